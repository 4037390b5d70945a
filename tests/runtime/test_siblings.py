"""Siblings side by side: what plain asyncio leaves its caller, and what the kit does."""

import asyncio

import pytest

from kit.core.outcome import Failure, Outcome
from kit.models.scripted import ScriptedModel
from kit.runtime.turn import run_turn
from tests.kits import ALICE, answering, asks, failing, small_kit, stitched

MISBEHAVIOUR: dict[str, tuple[ScriptedModel, str]] = {
    "raises": (failing(RuntimeError("db-17 refused"), 0.1), "exception"),
    "its library cancels itself": (failing(asyncio.CancelledError("db-17"), 0.1), "exception"),
    "hangs": (answering("Too late.", delay=600), "timeout"),
    "says nothing": (answering("", delay=0.1), "insufficient"),
}
"""What an agent does, and why it has no answer then."""


@pytest.mark.req("PC2-R-8", "SO-4")
@pytest.mark.parametrize("kind", MISBEHAVIOUR)
async def test_a_sibling_that_goes_wrong_changes_nothing_of_what_the_others_answer_or_when(
    kind: str,
):
    async def others(third: ScriptedModel) -> tuple[Outcome, list[Outcome]]:
        early, late = answering("Early.", 0.05), answering("Late.", 3.0)
        models = {"early": early, "third": third, "late": late}
        reply = await run_turn("go", ALICE, small_kit([asks(*models), stitched], models))
        assert reply.status == "ok" and "Late." in reply.text
        first, own, last = reply.outcomes
        return own, [outcome.replace(call_id="") for outcome in (first, last)]

    fine, undisturbed = await others(answering("Fine.", 0.1))
    model, reason = MISBEHAVIOUR[kind]
    gone, disturbed = await others(model)
    assert disturbed == undisturbed, "each says the same, from the same moment to the same moment"
    assert {outcome.kind for outcome in (fine, *disturbed)} == {"answer"}
    assert isinstance(gone, Failure) and gone.reason == reason
