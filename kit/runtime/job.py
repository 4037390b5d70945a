"""A small structured job for the helper model: one call, one string back; whatever goes wrong is None.

One of them fills the fields of a hand-off from earlier turns, where no rule does.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage

from kit.compose.prompts import tokens
from kit.compose.reference import resolve
from kit.core.bodies.memory import Distillation
from kit.core.card import AgentCard
from kit.core.outcome import AgentCall, Answer, Outcome
from kit.core.record import ShownComponent
from kit.models.message import human_text
from kit.runtime.call_model import ModelReply, call_model
from kit.runtime.context import RunContext
from kit.runtime.dispatch import run_to_outcome
from kit.runtime.handoff import LONGEST_CONTEXT, field_schema, function_schema


@dataclass(frozen=True, slots=True)
class Job:
    """What a helper model is asked for, submitted through a tool it must call: one text, or fields."""

    name: str
    """Of the tool; the argument of a text is the same without `submit_`."""
    description: str
    longest: int
    """Characters of the text; more are cut off."""
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Name -> JSON schema of fields that take the place of a text, all optional; what is submitted is their JSON."""

    @property
    def field(self) -> str:
        return self.name.removeprefix("submit_")

    @property
    def tool(self) -> dict[str, Any]:
        """The function schema of the tool."""
        text = {"type": "string", "description": self.description, "maxLength": self.longest}
        properties, required = (
            (self.fields, []) if self.fields else ({self.field: text}, [self.field])
        )
        parameters = {"type": "object", "properties": properties, "required": required}
        return function_schema(self.name, self.description, parameters)

    def read(self, reply: ModelReply) -> str:
        """Returns what a reply submits; its words where it calls nothing and a text is asked for."""
        args: dict[str, Any] = {}
        for tool_call in reply.calls:
            if tool_call["name"] == self.name:
                args = tool_call["args"]
                break
        if self.fields:
            return json.dumps(args)
        text = args.get(self.field) or reply.text
        if isinstance(text, str):
            return " ".join(text.split())[: self.longest]
        return ""


PRIOR_CONTEXT = Job(
    "submit_prior_context",
    "One to three sentences in your own words for a specialist who did not see these turns: the "
    "specific products, brands, "
    "stores, offers, receipts, dates, amounts and ids they named, and what the user wants to get done. Facts only.",
    LONGEST_CONTEXT,
)
SUMMARY = Job(
    "submit_summary",
    "A summary that takes the place of these turns: every name, id, amount and date that may be "
    "asked for again, what was "
    "decided, and what is still open. Facts only, in the order they came.",
    3200,
)
QUERY = Job(
    "submit_query",
    "What is left of the user's latest message for one specialist once the others have theirs: "
    "the user's own words for that "
    "part, nothing added, nothing rephrased.",
    2000,
)
JOBS: Mapping[str, Job] = {job.name: job for job in (PRIOR_CONTEXT, SUMMARY, QUERY)}


async def run_job(
    job: Job, material: Sequence[BaseMessage], ask: str, ctx: RunContext, *, news: int = 1
) -> str | None:
    """What the helper model submits about earlier messages; None when it fails, hangs or says nothing.

    `news`: how many of its messages, the request included, are not of earlier turns.
    Its call is a span of this turn and its usage is the caller's; it takes at most the deck's `helper_ms`.
    """

    model = ctx.turn.jobs.get(job.name)
    if model is None:
        return None

    async def work(call: AgentCall, inner: RunContext) -> Outcome:
        thread = [*material, human_text(call.query)]
        reply = await call_model(model, thread, inner, agent=call.agent, purpose="job", news=news)
        return call.answered(job.read(reply))

    call = AgentCall(call_id=job.name, agent=job.field, query=f"{ask}\n{job.description}")
    outcome = await run_to_outcome(
        work, call, ctx._replace(path=f"{ctx.path}/{job.field}"), ctx.turn.settings.helper_ms / 1000
    )
    if isinstance(outcome, Answer):
        return outcome.text or None
    return None


_COUNTED = re.compile(r"\b(first|last|top)\s+(two|three|four|five|[2-9])\b", re.I)
_PART = re.compile(r"\b(?:and|or|with|to|than)\b|[,&]", re.I)
_NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5}


def fields_from(card: AgentCard, source: str) -> list[str]:
    """Names of the fields that a card has filled from one source."""
    texts: list[str] = []
    for name, handoff_field in card.handoff.fields.items():
        if handoff_field.source == source:
            texts.append(name)
    return texts


def distilling(card: AgentCard) -> Job | None:
    """The job that fills a card's fields from the conversation; None where it has no such field."""
    fields: dict[str, Any] = {}
    for name in fields_from(card, "conversation"):
        fields[name] = field_schema(card.handoff.fields[name])
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
