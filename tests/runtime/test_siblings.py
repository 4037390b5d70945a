"""Siblings side by side: what plain asyncio leaves its caller, and what the kit does."""

import asyncio

import pytest

from kit.core.outcome import AgentCall, Answer, Failure, Outcome
from kit.models.scripted import ScriptedModel
from kit.runtime.dispatch import dispatch, fan_out
from kit.runtime.turn import run_turn
from studies.failure_isolation import Sibling, caller_context, compare, exact, start
from tests.kits import ALICE, answering, asks, failing, small_kit, stitched

THREE = (Sibling("quick", 0.1), Sibling("raises", 0.2, error="db-17 refused"), Sibling("slow", 0.6))


async def test_plain_asyncio_loses_cancels_or_waits_and_fan_out_keeps():
    gather, group, caught, ours = await compare(THREE)
    assert (gather.seconds, gather.answers, gather.running) == (0.2, (), ("slow",))
    assert gather.exception == "RuntimeError: db-17 refused"
    assert (group.seconds, group.answers, group.running) == (0.2, ("quick",), ())
    assert group.exception.startswith("ExceptionGroup")
    assert (caught.seconds, caught.answers, caught.failures) == (
        0.6,
        ("quick", "slow"),
        ("raises",),
    )
    assert (ours.seconds, ours.answers, ours.failures, ours.exception, ours.running) == (
        0.6,
        ("quick", "slow"),
        ("raises",),
        "",
        (),
    )


async def test_only_the_kit_ends_one_that_hangs_at_its_budget():
    ways = {
        way.way: way
        for way in await compare([Sibling("quick", 0.1), Sibling("hangs", 12.0, budget=2.0)])
    }
    assert [
        ways[way].seconds for way in ("gather", "TaskGroup", "gather, exceptions returned")
    ] == [12.0] * 3
    assert ways["fan_out"].seconds == pytest.approx(2.0, abs=1e-9)
    assert ways["fan_out"].failures == ("hangs",)


async def test_dispatch_and_fan_out_can_be_called_by_hand():
    ctx = caller_context(THREE, cap=2)
    calls = [
        AgentCall(call_id=f"c{n}", agent=sibling.id, query="q") for n, sibling in enumerate(THREE)
    ]
    one = await dispatch(calls[0], ctx)
    assert isinstance(one, Answer) and one.text == "The part of quick."
    fan = await fan_out(calls, ctx)
    assert [type(outcome) for outcome in fan.outcomes] == [Answer, Failure]
    assert [call.agent for call in fan.dropped] == ["slow"]


@pytest.mark.realtime
async def test_a_turn_on_the_running_loop_can_be_stopped():
    turn = start([Sibling("slow", 5.0)])
    await asyncio.sleep(0.05)
    turn.cancel()
    assert (await turn).status == "cancelled"


async def test_a_whole_turn_says_what_failed():
    reply = await exact(THREE)
    assert "part of quick" in reply.text and "raises" in reply.text and "db-17" not in reply.text


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
