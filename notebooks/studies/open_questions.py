"""Four questions that the designs leave open, each measured as far as that goes without a paid model."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import StructuredTool

from kit.core.bodies.call import AgentEnded, AgentStarted
from kit.core.bodies.speech import Status, StatusLine, Text
from kit.core.card import AgentCard, Policy
from kit.core.outcome import Answer, Usage
from kit.core.value import Value
from kit.metrics.estimate import Estimate, wilson
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.handle import Reply
from kit.runtime.team import Team, bind
from kit.runtime.turn import run_turn
from kit.settings import Settings
from kit.tools.tool import tool_context
from kit.wire import open_kit
from studies import recall
from studies.study_deck import kept_by, plain_cards, study_deck, study_session

SECONDS = {"rewards": 0.5, "shop": 1.0, "support": 6.0}
"""How long each sub-agent works."""
TIMEOUTS: Mapping[str, Mapping[str, float]] = {
    "2 s for all": dict.fromkeys(SECONDS, 2.0),
    "8 s for all": dict.fromkeys(SECONDS, 8.0),
    "each its own": {"rewards": 2.0, "shop": 2.0, "support": 8.0},
}
STATUSES = {"shop": (0.2, 0.1, 0.9, 1.0), "rewards": (0.25, 0.6, 2.0), "support": (3.0, 1.0)}
"""Seconds before each status of a sub-agent; after the last it answers."""
FITS_NOBODY = "tell me something nice about clouds"


POLICIES: Mapping[str, Mapping[str, object]] = {
    "forward": {},
    "interleave": {"order": "interleave"},
    "window of 400 ms": {"default": "batch"},
    "agent by agent": {"default": "batch", "batch_by": "agent"},
    "one line a second": {"gap_ms": 1000},
    "suppress": {"default": "suppress"},
}
"""Name -> what the deck says of statuses."""


class Telling(Value):
    """One turn under one policy; times in seconds."""

    policy: str
    lines: int
    first_useful: float | None
    """From the turn's start to the first progress line or answer text; a preamble says nothing yet."""
    silence: float
    """The longest stretch of anybody's work without a line about it."""


class Wait(Value):
    """What a way to set time-outs gives: answers of three when all work, and how long a turn is when one hangs."""

    answers: int
    hanging: float


async def carried() -> dict[str, tuple[Estimate, float]]:
    """Facts of the first turn that a later sub-agent sees, and the mean tokens it is shown, by way."""
    rows = await recall.measure(dialogues=10)
    ways: dict[str, list[recall.Recall]] = {}
    for row in rows:
        ways.setdefault(row.way, []).append(row)
    return {
        way: (
            wilson(sum(row.in_view for row in part), len(part)),
            sum(row.tokens for row in part) / len(part),
        )
        for way, part in ways.items()
    }


async def timeouts() -> dict[str, Wait]:
    """Plays each way twice: every sub-agent works, and `rewards` hangs. For a virtual clock."""
    result: dict[str, Wait] = {}
    for way, limits in TIMEOUTS.items():
        healthy, hung = (
            await _play(limits, SECONDS),
            await _play(limits, {**SECONDS, "rewards": 600.0}),
        )
        answers = sum(isinstance(outcome, Answer) for outcome in healthy.outcomes)
        result[way] = Wait(answers=answers, hanging=hung.events[-1].at)
    return result


async def progress() -> list[Telling]:
    """Plays a turn of three sub-agents that report at different rates under each policy. For a virtual clock."""
    cards = [
        card.model_copy(update={"tools": (f"pulse_{card.id}",)}) for card in plain_cards(STATUSES)
    ]
    tools = {f"pulse_{name}": _pulse(name, pauses) for name, pauses in STATUSES.items()}
    names = [f"step_{name}" for name in STATUSES]
    tellings: list[Telling] = []
    for policy, settings in POLICIES.items():
        models = {
            name: ScriptedModel(Line(calls=[(f"pulse_{name}", {})]), Line(f"{name} done."))
            for name in STATUSES
        }
        deck = study_deck(cards, statuses=names, status_policy=settings)
        team = bind(deck, {"orchestrator": ScriptedModel(_lead), **models}, tools)
        reply = await run_turn("go", study_session("progress"), kept_by(None, team))
        tellings.append(_telling(policy, reply))
    return tellings


def _telling(policy: str, reply: Reply) -> Telling:
    useful: list[float] = []
    lines = 0
    silence = 0.0
    heard: dict[str, float] = {}
    reported: set[str] = set()
    for event in reply.events:
        match event.body:
            case AgentStarted(agent=agent):
                heard[agent] = event.at
            case StatusLine(agent=agent):
                lines += 1
                useful.append(event.at)
                # A line about several agents names none: it is about those that have reported since.
                for name in [agent] if agent else sorted(reported):
                    reported.discard(name)
                    silence = max(silence, event.at - heard[name])
                    heard[name] = event.at
            case Status(agent=agent):
                reported.add(agent)
            case AgentEnded(agent=agent):
                silence = max(silence, event.at - heard.pop(agent))
            case Text(channel="answer"):
                useful.append(event.at)
            case _:
                pass
    return Telling(
        policy=policy, lines=lines, first_useful=min(useful, default=None), silence=silence
    )


async def without_calls() -> dict[str, Usage]:
    """What a turn of the offline stand-in spends: small talk, answered without a call, and a
    message that nobody is for."""
    async with open_kit(Settings(store=":memory:", pace=0.0, model="offline")) as kit:
        plays = {"small talk, no call": "hello", "fits nobody, the default is asked": FITS_NOBODY}
        return {
            name: (await kit.ask(message, kit.session(name))).usage
            for name, message in plays.items()
        }


async def _play(limits: Mapping[str, float], seconds: Mapping[str, float]) -> Reply:
    cards = [
        card.model_copy(update={"policy": Policy(time_budget_ms=int(1000 * limits[card.id]))})
        for card in plain_cards(SECONDS)
    ]
    models = {
        name: ScriptedModel(Line(f"{name} answers.", delay=delay))
        for name, delay in seconds.items()
    }
    return await run_turn("go", study_session("timeouts"), kept_by(None, _team(cards, models)))


def _team(cards: Sequence[AgentCard], models: Mapping[str, BaseChatModel]) -> Team:
    return bind(study_deck(cards), {"orchestrator": ScriptedModel(_lead), **models})


def _lead(messages: list[BaseMessage]) -> Line:
    results = [str(message.content) for message in messages if isinstance(message, ToolMessage)]
    asked = [
        (f"ask_{name}", {"query": f"about {name}", "intent_count": len(SECONDS)})
        for name in SECONDS
    ]
    return Line(" ".join(results)) if results else Line("Let me look.", calls=asked)


def _pulse(name: str, pauses: Sequence[float]) -> StructuredTool:
    async def work() -> str:
        for pause in pauses:
            await asyncio.sleep(pause)
            tool_context().emit(Status(agent=name, status=f"step_{name}"))
        return "ok"

    return StructuredTool.from_function(coroutine=work, name=f"pulse_{name}", description="Works.")


def tables(
    carry: Mapping[str, Any],
    waits: Mapping[str, Wait],
    tellings: Sequence[Telling],
    spent: Mapping[str, Usage],
) -> list[str]:
    """Formats the four measurements as tables in Markdown, in the order of the questions."""
    return [
        _table(
            "way | facts in view | tokens shown",
            [f"{w} | {s} | {t:,.0f}" for w, (s, t) in carry.items()],
        ),
        _table(
            "time-out | answers, all at work | turn, rewards hangs",
            [
                f"{way} | {wait.answers} of {len(SECONDS)} | {wait.hanging:.1f} s"
                for way, wait in waits.items()
            ],
        ),
        _table(
            "policy | lines | first useful | longest silence",
            [
                f"{told.policy} | {told.lines} | {told.first_useful or 0:.2f} s | {told.silence:.2f} s"
                for told in tellings
            ],
        ),
        _table(
            "turn | model calls",
            [f"{name} | {usage.model_calls}" for name, usage in spent.items()],
        ),
    ]


def _table(head: str, rows: Sequence[str]) -> str:
    return "\n".join(
        [f"| {head} |", "|" + "---|" * (head.count("|") + 1), *(f"| {row} |" for row in rows)]
    )
