"""What each remedy against time-outs buys and costs: calls of one sub-agent, as it is and with each
remedy.

The sub-agent is simulated: its models take the published times, its tool a fixed one, and how often
a quick first look is enough is an assumption. The calls, budgets, races and hand-offs are the real
ones.
"""

import asyncio
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import yaml
from langchain_core.tools import BaseTool

from kit.compose.deck import Deck
from kit.compose.models import load_models
from kit.compose.parts import DeckSettings
from kit.core.card import AgentCard
from kit.core.outcome import AgentCall, Answer, Outcome
from kit.core.simulation import Part, Truth
from kit.core.trace import Trace, trace_of
from kit.home import HOME
from kit.metrics.estimate import Estimate, share
from kit.models.seeded_draws import draws
from kit.models.simulated import case_at_hand, use_truth
from kit.patterns.topology import with_topologies
from kit.runtime.clock import run_virtual
from kit.runtime.dispatch import dispatch
from kit.runtime.team import Team, bind
from kit.tools.enricher import structured
from kit.tools.tool import ToolResult
from studies.study_deck import direct_context
from studies.study_statistics import mean, quantile, ratio

SEED = 7
BUDGET = 8.0
"""Seconds the caller has for this sub-agent: what its card allows, as it is."""
TOOL_SECONDS = 0.2
"""Of its tool: an assumption."""
FITS = 0.7
"""How often what the tool finds first is what was asked for, so that a draft is sure of itself: an assumption."""
REQUEST = "recommend a dark fantasy that is new"
CARDS = """
explainer: {model: simulated-gpt-4.1-mini, tools: [catalog], policy: {time_budget_ms: 8000}}
quick: {model: simulated-gpt-5.4-nano, tools: [catalog], policy: {time_budget_ms: 5000}}
editor: {model: simulated-gpt-4.1-mini, policy: {time_budget_ms: 3000}, handoff: {fields: {draft: {required: true}}}}
"""
WAYS: Mapping[str, str] = {
    "as it is": "",
    "race": "deck: {topologies: {chat: {explainer: {kind: race, members: [explainer, quick]}}}}",
    "fallback": "explainer: {fallback_model: simulated-gpt-5.4-nano, policy: {time_budget_ms: "
    "8000, model_time_ms: 3000}}",
    "pipeline": "deck: {topologies: {chat: {explainer: {kind: pipeline, members: [quick, editor], bar: 0.6}}}}",
    "more time": "explainer: {policy: {time_budget_ms: 12000}}",
}
"""Remedy -> what it changes in a card or in deck.yaml. The last is no remedy: it is there to show why."""
_SHAPE = {
    "type": "object",
    "properties": {"text": {"type": "string", "maxSentences": 2}, "confidence": {"type": "number"}},
    "required": ["text", "confidence"],
}


class Call(NamedTuple):
    """One call of the sub-agent; a list of them is a tidy frame."""

    way: str
    case: int
    in_time: bool
    """Answered within BUDGET."""
    own: bool
    """The answer is in the words of the model that its card names first."""
    caveat: bool
    """It comes with a reservation, which the user is told."""
    seconds: float
    """Virtual ones: only waiting counts."""
    tokens: int
    """Read and written, those of a stopped call included."""


class RemedySummary(NamedTuple):
    """What one remedy bought and cost, over all its calls; each with its 95 % interval."""

    way: str
    in_time: Estimate
    p50: Estimate
    """Seconds; a call that was cut off counts with the time it had."""
    p95: Estimate
    tokens: Estimate
    """A call."""
    cost: Estimate
    """Tokens in times of those as it is; no source gives a price."""
    own: Estimate
    """Share answered by the model that the card names first."""
    caveat: Estimate
    """Share answered with a reservation."""


def deck_of(way: str) -> Deck:
    """Returns the deck with one way's change in it."""
    change: dict[str, Any] = yaml.safe_load(WAYS[way]) or {}
    cards = [AgentCard(id="lead", description="Asks.", model="offline", sub_agents=("explainer",))]
    for name, fields in yaml.safe_load(CARDS).items():
        own: dict[str, Any] = {
            "id": name,
            "description": f"The {name} of recommendations.",
            **fields,
            **change.get(name, {}),
        }
        handoff: dict[str, Any] = own.get("handoff", {})
        cards.append(
            AgentCard.model_validate({**own, "handoff": {"output_schema": _SHAPE, **handoff}})
        )
    settings = DeckSettings.model_validate(
        {"orchestrator": "lead", "required_blocks": (), **change.get("deck", {})}
    )
    return Deck.of(
        cards,
        settings=settings,
        models=_models().values(),
        name=f"remedies, {way}",
        known=["catalog"],
    )


async def play_calls(ways: Iterable[str] = WAYS, count: int = 300) -> list[Call]:
    """Plays `count` calls in each way, in virtual time; every way meets the same requests."""
    return await asyncio.to_thread(run_virtual, _play_calls(tuple(ways), count))


def summarise(rows: Iterable[Call]) -> list[RemedySummary]:
    """Returns a row for each way, in the order in which they come; costs are compared with the first."""
    by: dict[str, list[Call]] = {}
    for row in rows:
        by.setdefault(row.way, []).append(row)
    first = [row.tokens for row in next(iter(by.values()))]
    return [_summary(way, part, first) for way, part in by.items()]


def _summary(way: str, part: list[Call], first: list[int]) -> RemedySummary:
    seconds, tokens, n = [row.seconds for row in part], [row.tokens for row in part], len(part)
    p50, p95 = (quantile(seconds, at) for at in (0.5, 0.95))
    counts = (
        sum(row.in_time for row in part),
        sum(row.own for row in part),
        sum(row.caveat for row in part),
    )
    in_time, own, caveat = (share(count, n) for count in counts)
    return RemedySummary(way, in_time, p50, p95, mean(tokens), ratio(tokens, first), own, caveat)


async def _play_calls(ways: Iterable[str], count: int) -> list[Call]:
    rows: list[Call] = []
    for way in ways:
        team = with_topologies(bind(deck_of(way), None, {"catalog": catalog()}))
        rows += [_row(way, case, *await call(team, case)) for case in range(count)]
    return rows


async def call(team: Team, case: int) -> tuple[Outcome, Trace]:
    """Calls the sub-agent once, on the running loop; returns the outcome and its spans."""
    ctx = direct_context(team, ["explainer"])
    with use_truth(
        Truth(
            case=f"{SEED}/{case}", parts=(Part(agent="explainer", query=REQUEST, tool="catalog"),)
        )
    ):
        outcome = await dispatch(AgentCall(call_id="1", agent="explainer", query=REQUEST), ctx)
    return outcome, trace_of(ctx.turn.log.events)


def _row(way: str, case: int, outcome: Outcome, trace: Trace) -> Call:
    assert outcome.timing is not None
    seconds = outcome.timing.ended - outcome.timing.started
    answer = outcome if isinstance(outcome, Answer) else None
    usage = outcome.usage
    return Call(
        way=way,
        case=case,
        in_time=answer is not None and seconds <= BUDGET,
        own=answer is not None and _speaker(trace) == "simulated-gpt-4.1-mini",
        caveat=answer is not None and answer.caveat is not None,
        seconds=seconds,
        tokens=usage.input_tokens + usage.output_tokens,
    )


def _speaker(trace: Trace) -> str:
    """Returns the model whose reply came last."""
    replies = [span for span in trace.spans if span.kind == "model" and span.status == "ok"]
    return str(max(replies, key=lambda span: span.ended or 0.0).attributes["model"])


def catalog(seconds: float = TOOL_SECONDS) -> BaseTool:
    """Makes the sub-agent's tool: it finds what was asked for, or something else, as the case has it."""

    async def look(**_: Any) -> tuple[str, ToolResult]:
        await asyncio.sleep(seconds)
        fits = draws(SEED, case_at_hand(), "catalog").choice < FITS
        text = f"Simulated: {REQUEST}." if fits else "Simulated: nothing of the kind."
        return text, ToolResult(text=text)

    return structured(
        "catalog", "Simulated: looks for titles.", {"query": {"type": "string"}}, (), look
    )


@lru_cache(maxsize=1)
def _models() -> Mapping[str, Any]:
    return load_models(HOME / "cards" / "models.yaml")
