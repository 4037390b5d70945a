"""Siblings side by side: what plain asyncio leaves its caller, and what the kit does."""

import asyncio

import pytest

from kit.core.outcome import Answer, Failure, Outcome
from kit.models.scripted import ScriptedModel
from kit.runtime.turn import run_turn
from tests.kits import ALICE, answering, asks, failing, small_kit, stitched

MISBEHAVIOUR: dict[str, ScriptedModel] = {
    "raises": failing(RuntimeError("db-17 refused"), 0.1),
    "is cancelled": failing(asyncio.CancelledError("db-17"), 0.1),
    "hangs": answering("Too late.", delay=600),
    "says nothing": answering("", delay=0.1),
}


@pytest.mark.req("PC2-R-8")
@pytest.mark.parametrize("kind", MISBEHAVIOUR)
async def test_a_sibling_that_goes_wrong_changes_nothing_of_what_the_others_answer_or_when(
    kind: str,
):
    async def others(third: ScriptedModel) -> tuple[list[tuple[str, str, float, float]], Outcome]:
        models = {
            "early": answering("Early.", 0.05),
            "third": third,
            "late": answering("Late.", 3.0),
        }
        reply = await run_turn("go", ALICE, small_kit([asks(*models), stitched], models))
        good = [
            o for o in reply.outcomes if isinstance(o, Answer) and o.agent != "third" and o.timing
        ]
        return [
            (o.agent, o.text, o.timing.started, o.timing.ended) for o in good if o.timing
        ], reply.outcomes[1]

    undisturbed, fine = await others(answering("Fine.", 0.1))
    disturbed, gone = await others(MISBEHAVIOUR[kind])
    assert disturbed == undisturbed and [agent for agent, *_ in disturbed] == ["early", "late"]
    assert isinstance(fine, Answer) and isinstance(gone, Failure)
