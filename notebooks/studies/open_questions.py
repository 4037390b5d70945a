"""Four questions that the designs leave open, each measured as far as that goes without a paid model."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import StructuredTool

from kit.bench.status_replay import Replay, compare
from kit.core.bodies.speech import Status
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


async def progress() -> list[Replay]:
    """Replays one turn of three sub-agents that report at different rates under each policy. For a virtual clock."""
    cards = [
        card.model_copy(update={"tools": (f"pulse_{card.id}",)}) for card in plain_cards(STATUSES)
    ]
    tools = {f"pulse_{name}": _pulse(name, pauses) for name, pauses in STATUSES.items()}
    models = {
        name: ScriptedModel(Line(calls=[(f"pulse_{name}", {})]), Line(f"{name} done."))
        for name in STATUSES
    }
    names = [f"step_{name}" for name in STATUSES]
    team = bind(
        study_deck(cards, statuses=names), {"orchestrator": ScriptedModel(_lead), **models}, tools
    )
    reply = await run_turn("go", study_session("progress"), kept_by(None, team))
    return compare(reply.events, {})


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
    replays: Sequence[Replay],
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
                f"{r.policy} | {r.lines} | {r.first_useful or 0:.2f} s | {max(r.silence.values()):.2f} s"
                for r in replays
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
