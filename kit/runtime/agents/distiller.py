"""The distiller: what earlier turns hold for the fields of a hand-off, by rule where one does, else
by the helper model."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from kit.compose.prompts import tokens
from kit.compose.reference import resolve
from kit.core.bodies.memory import Distillation
from kit.core.card import AgentCard
from kit.core.outcome import AgentCall
from kit.core.record import ShownComponent
from kit.runtime.agents.ask_tool import field_schema
from kit.runtime.context import RunContext
from kit.runtime.job import Job, run_job

_COUNTED = re.compile(r"\b(first|last|top)\s+(two|three|four|five|[2-9])\b", re.I)
_PART = re.compile(r"\b(?:and|or|with|to|than)\b|[,&]", re.I)
_NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5}


def fields_from(card: AgentCard, source: str) -> list[str]:
    """Names of the fields that a card has filled from one source."""
    texts: list[str] = []
    for name, field in card.handoff.fields.items():
        if field.source == source:
            texts.append(name)
    return texts


def distilling(card: AgentCard) -> Job | None:
    """The job that fills a card's fields from the conversation; None where it has no such field."""
    fields = {
        name: field_schema(card.handoff.fields[name]) for name in fields_from(card, "conversation")
    }
    ask = "What the earlier turns say for each field; a field of which they say nothing is left out. Facts only."
    if fields:
        return Job(f"submit_{card.id}_fields", ask, 0, fields)
    return None


async def distil(
    call: AgentCall,
    card: AgentCard,
    material: Sequence[BaseMessage],
    shown: Sequence[ShownComponent],
    ctx: RunContext,
) -> Mapping[str, Any]:
    """Returns a call's fields with those that earlier turns fill; what they do not say stays empty.

    `shown` are the items a rule picks from: those a text names or points at. The limits of a field
    hold later, at the hand-off.
    """
    fields: dict[str, Any] = {}
    if shown:
        ids = list(dict.fromkeys(item.id for item in shown))
        for name in fields_from(card, "shown"):
            is_array = card.handoff.fields[name].type == "array"
            fields[name] = ids if is_array else ids[0]
    by_rule = tuple(fields)
    job = distilling(card) if material else None
    if job is not None:
        request = f"A specialist takes over. The request is: {call.query}"
        text = await run_job(job, material, request, ctx)
        answer: Any = json.loads(text) if text else {}
        for name in job.fields:
            if answer.get(name) not in (None, "", []):
                fields[name] = answer[name]
    if not by_rule and job is None:
        return call.fields
    by_model = tuple(name for name in fields if name not in by_rule)
    size_before = sum(tokens(str(message.content)) for message in material)
    size_after = sum(tokens(str(value)) for value in fields.values())
    ctx.emit(
        Distillation(
            agent=call.agent,
            by_rule=by_rule,
            by_model=by_model,
            before=size_before,
            after=size_after,
        )
    )
    return {**call.fields, **fields}


def meant(text: str, shown: Sequence[ShownComponent], pointing: bool) -> list[ShownComponent]:
    """Which of the items shown, oldest turn first, a text means: those it names, else those whose
    places it gives, else all of the newest turn where it only points."""
    lower = text.lower()
    named = [item for item in shown if item.title and item.title.lower() in lower]
    if named:
        return named
    newest = [item for item in shown if item.turn_id == shown[-1].turn_id]
    match = _COUNTED.search(text)
    if match is not None:
        number = _NUMBERS.get(match[2].lower()) or int(match[2])
        if match[1].lower() == "last":
            return newest[-number:]
        return newest[:number]
    resolved: dict[str, ShownComponent] = {}
    for part in _PART.split(text):
        item = resolve(part, shown)
        if item is not None:
            resolved[item.id] = item
    if resolved:
        return list(resolved.values())
    return newest if pointing else []
