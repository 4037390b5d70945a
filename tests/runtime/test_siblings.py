"""Siblings side by side: what plain asyncio leaves its caller, and what the kit does."""

import asyncio

import pytest

from kit.core.outcome import Outcome
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
    async def others(third: ScriptedModel) -> tuple[Outcome, list[Outcome]]:
        early, late = answering("Early.", 0.05), answering("Late.", 3.0)
        models = {"early": early, "third": third, "late": late}
        reply = await run_turn("go", ALICE, small_kit([asks(*models), stitched], models))
        first, own, last = reply.outcomes
        return own, [outcome.replace(call_id="") for outcome in (first, last)]

    fine, undisturbed = await others(answering("Fine.", 0.1))
    gone, disturbed = await others(MISBEHAVIOUR[kind])
    assert disturbed == undisturbed, "each says the same, from the same moment to the same moment"
    assert {outcome.kind for outcome in (fine, *disturbed)} == {"answer"} and gone.kind == "failure"
