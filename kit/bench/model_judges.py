"""The judges of a grid: models that score turns. A verdict is a turn of its own: counted, recorded
and lost like any other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import BaseMessage

from kit.bench.case import Case
from kit.bench.grid.cell import Cell, judge_track
from kit.bench.grid.failures import error_of
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.stand_ins.transient_store import TransientStore
from kit.bench.routing import BENCH_USER
from kit.bench.scoring.judge import Verdict, question, verdict_in
from kit.bench.scoring.observation import Observation
from kit.bench.scoring.own_judges import Loss, VerdictLost, judge_in_words
from kit.bench.statistics.measures import COUNTS
from kit.compose.deck import Deck
from kit.compose.parts import DeckSettings
from kit.core.card import AgentCard
from kit.core.context import Session
from kit.core.model import ModelSpec
from kit.core.outcome import AgentCall, Outcome, Usage, total
from kit.runtime.call_model import call_model
from kit.runtime.context import RunContext
from kit.runtime.handle import Reply
from kit.runtime.pattern import Pattern
from kit.runtime.turn import run_turn
from kit.wire import Kit

CARD = AgentCard(id="judge", description="Judges a reply by a rubric.", model="offline")
PATIENCE = 120_000
"""Milliseconds that a verdict may take: whoever waits for it is no user."""


@dataclass(frozen=True)
class Judgement:
    """What the judges say of a turn."""

    verdicts: Mapping[str, Verdict] = field(default_factory=dict[str, Verdict])
    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    """Judge -> what its verdict counts for."""
    usage: Usage = field(default_factory=Usage)

    @property
    def fields(self) -> dict[str, Any]:
        """What the turn's line says of it; nothing where nobody was asked."""
        if not self.verdicts:
            return {}
        verdicts = {name: verdict.model_dump() for name, verdict in self.verdicts.items()}
        return {"verdicts": verdicts, **bill(self.usage)}


def bill(usage: Usage) -> dict[str, Any]:
    """What judges cost beside the turn, as a field of a line; nothing where nobody was asked."""
    if usage.model_calls:
        return {"judges": {name: getattr(usage, name) for name in COUNTS}}
    return {}


Kits = Mapping[str, Kit]
"""Judge -> its kit, opened on `judge_deck`."""


async def judge_turn(
    spec: GridSpec,
    kits: Kits,
    cell: Cell,
    case: Case,
    observation: Observation,
    bills: list[Usage],
) -> Judgement:
    """What the judges of a grid say of a turn, one after the other; `bills` takes what each has cost.

    Raises VerdictLost where one of them says nothing, and CassetteError.
    """
    verdicts = dict[str, Verdict]()
    scores = dict[str, float]()
    paid = len(bills)
    for name, kit in kits.items():
        judge = spec.grid.judges[name]
        messages = question(spec.rubrics[name], case, observation)
        text, reply = await _ask(kit, messages, judge_track(spec, cell, name, observation.turn))
        bills.append(reply.usage)
        loss = error_of([reply], faults=False)
        verdict = verdict_in(text)
        if loss is not None or verdict is None:
            error_class, line = loss or (
                "judge",
                f"no verdict in {text[:100]!r}: ask another model, or for JSON by `params`",
            )
            judge_words = judge_in_words(name)
            raise VerdictLost(Loss(error_class, f"{judge_words}: {line}", judge_words))
        verdicts[name] = verdict
        scores[name] = (
            verdict.score if judge.threshold is None else float(verdict.score >= judge.threshold)
        )
    return Judgement(verdicts, scores, total(bills[paid:]))


async def _ask(kit: Kit, messages: Sequence[BaseMessage], track: str) -> tuple[str, Reply]:
    """What the kit's model says to these messages, empty where it fails, and the turn that it said it in."""
    model = kit.team.orchestrator.model
    texts = list[str]()

    async def ask(call: AgentCall, ctx: RunContext) -> Outcome:
        reply = await call_model(
            model, messages, ctx, agent=call.agent, purpose="work", news=len(messages)
        )
        texts.append(reply.text)
        return call.answered("Judged.")

    cassette = kit.cassette
    if cassette is not None:
        cassette = cassette.track(track)
    if model.gate is not None and (cassette is None or cassette.mode != "replay"):
        await model.gate.opened()
    host = replace(kit, store=TransientStore(), cassette=cassette)
    reply = await run_turn(
        "Judge.", Session(id=CARD.id, principal=BENCH_USER), host, Pattern(CARD.id, ask), history=()
    )
    if cassette is not None:
        # What a judge said once is not paid for twice.
        cassette.close()
    return "".join(texts), reply


def judge_deck(models: Mapping[str, ModelSpec]) -> Deck:
    """The deck of a judge's kit: a card without a prompt, for a judge is asked in the words of its rubric."""
    times = {"turn_budget_ms": PATIENCE, "model_call_budget_ms": PATIENCE}
    settings = DeckSettings.model_validate(
        {"orchestrator": CARD.id, "required_blocks": (), **times}
    )
    return replace(Deck.of([CARD], settings=settings), models=models)
