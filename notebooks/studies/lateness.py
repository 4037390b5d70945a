"""Three ways to run out of time, and what helps against which: a remedy chosen without a diagnosis may change nothing (SO-20)."""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from langchain_core.language_models.chat_models import BaseChatModel

from kit.core.simulation import Law, Spread
from kit.core.timeout import Cause, Diagnosis, diagnoses
from kit.models.scripted import Line, ScriptedModel
from kit.models.simulated import SimulatedModel
from kit.patterns.topology import arranged
from kit.runtime.clock import run_virtual
from kit.runtime.team import Team, bind
from studies.timeout_remedies import call, catalog, deck_of

FOREVER = 600.0
CASE = 1
"""Whose draws the other models take: none of them is slow in it."""
FIRST = "simulated-gpt-4.1-mini"
"""The model that goes wrong here: the one the sub-agent's card names."""
WENT_WRONG: Mapping[Cause, str] = {
    "tool": "its tool hangs",
    "model": "its model hangs",
    "reasoning": "its model looks things up again and again",
}
WAYS = ("as it is", "race", "fallback", "pipeline")


class Tried(NamedTuple):
    """One simulated call that went wrong, in one way of carrying it out."""

    cause: Cause
    way: str
    ended: str
    """`answer`, or the reason of its failure."""
    seconds: float
    """Virtual ones."""
    diagnoses: tuple[Diagnosis, ...]
    """What the trace says of each time-out in it."""


async def tried() -> list[Tried]:
    """Every cause in every way, in virtual time."""
    return await asyncio.to_thread(run_virtual, _tried())


async def _tried() -> list[Tried]:
    rows: list[Tried] = []
    for cause in WENT_WRONG:
        for way in WAYS:
            outcome, trace = await call(_team(cause, way), CASE)
            assert outcome.timing is not None
            ended = "answer" if outcome.kind == "answer" else outcome.reason
            found = tuple(diagnosis for _, diagnosis in diagnoses(trace))
            rows.append(Tried(cause, way, ended, outcome.timing.ended - outcome.timing.started, found))
    return rows


def _team(cause: Cause, way: str) -> Team:
    model: BaseChatModel = SimulatedModel(name=FIRST, law=Law(latency=Spread(median=FOREVER if cause == "model" else 1.0)))
    if cause == "reasoning":
        model = ScriptedModel(lambda _: Line(calls=[("catalog", {})], delay=1.2), name=FIRST)
    tool = catalog(FOREVER) if cause == "tool" else catalog()
    return arranged(bind(deck_of(way), {"explainer": model}, {"catalog": tool}))
