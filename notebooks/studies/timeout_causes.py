"""Three ways to run out of time, and which remedy helps against which: one chosen without a
diagnosis may change nothing."""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from langchain_core.language_models.chat_models import BaseChatModel

from kit.core.simulation import Law, LogNormal
from kit.core.timeout import Cause, Diagnosis, diagnoses
from kit.models.scripted import Line, ScriptedModel
from kit.models.simulated import SimulatedModel
from kit.patterns.topology import with_topologies
from kit.runtime.clock import run_virtual
from kit.runtime.team import Team, bind
from studies.timeout_remedies import call, catalog, deck_of

FOREVER = 600.0
CASE = 1
"""The case whose draws the other models take: none of them is slow in it."""
FIRST = "simulated-gpt-4.1-mini"
"""The model that goes wrong here: the one the sub-agent's card names."""
FAULTS: Mapping[Cause, str] = {
    "tool": "its tool hangs",
    "model": "its model hangs",
    "reasoning": "its model looks things up again and again",
}
WAYS = ("as it is", "race", "fallback", "pipeline")


class FaultyCall(NamedTuple):
    """One simulated call with one fault, under one remedy; a list of them is a tidy frame."""

    cause: Cause
    way: str
    result: str
    """`answer`, or the reason of its failure."""
    seconds: float
    """Virtual ones."""
    diagnoses: tuple[Diagnosis, ...]
    """What the trace says of each time-out in it."""


async def play_faults() -> list[FaultyCall]:
    """Plays every fault under every remedy, in virtual time."""
    return await asyncio.to_thread(run_virtual, _play_faults())


async def _play_faults() -> list[FaultyCall]:
    rows: list[FaultyCall] = []
    for cause in FAULTS:
        for way in WAYS:
            outcome, trace = await call(_team(cause, way), CASE)
            assert outcome.timing is not None
            result = "answer" if outcome.kind == "answer" else outcome.reason
            causes = tuple(diagnosis for _, diagnosis in diagnoses(trace))
            rows.append(
                FaultyCall(
                    cause, way, result, outcome.timing.ended - outcome.timing.started, causes
                )
            )
    return rows


def _team(cause: Cause, way: str) -> Team:
    model: BaseChatModel = SimulatedModel(
        name=FIRST, law=Law(latency=LogNormal(median=FOREVER if cause == "model" else 1.0))
    )
    if cause == "reasoning":
        model = ScriptedModel(lambda _: Line(calls=[("catalog", {})], delay=1.2), name=FIRST)
    tool = catalog(FOREVER) if cause == "tool" else catalog()
    return with_topologies(bind(deck_of(way), {"explainer": model}, {"catalog": tool}))
