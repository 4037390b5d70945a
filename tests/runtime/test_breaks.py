"""A sub-agent is made to fail in the middle of a turn: it alone is lost, the answer owns up, and the log says when."""

import asyncio

import pytest

from kit.core.bodies.call import AgentStarted, ToolEnded, ToolStarted
from kit.core.bodies.turn import AgentBroken
from kit.core.card import Policy
from kit.core.display.made_to_fail import wanted_faults
from kit.core.errors import FaultError
from kit.core.fault import CANARY, CANARY_NUMBER, RAW, Fault, Kind
from kit.core.fault_injection import inject_faults
from kit.runtime.turn import Turn, run_turn
from kit.ui.shared.turn_facts import fault_lines
from kit.ui.shared.turn_fold import advance
from kit.ui.shared.turn_view import TurnView
from kit.wire import open_kit
from tests.kits import (
    ALICE,
    EMBEDDED,
    SmallKit,
    answering,
    asks,
    bodies,
    failures,
    leading,
    nothing_runs,
    small_kit,
)

QUESTION = "how many points do I have, and find coffee deals"
MARKS = (RAW, CANARY, str(CANARY_NUMBER), f"{CANARY_NUMBER:,}")


def slow_kit(*agents: str) -> SmallKit:
    """A kit whose agents answer after ten seconds, have thirty, and can be made to fail."""
    models = {agent: answering(f"{agent} is known.", 10.0) for agent in agents}
    kit = small_kit(leading(asks(*agents)), models, defaults=Policy(time_budget_ms=30_000))
    kit.team = kit.team.with_faults()
    return kit


def start(kit: SmallKit) -> Turn:
    with inject_faults(()):
        return run_turn("about a and b", ALICE, kit)


@pytest.mark.parametrize(
    ("kind", "reason", "ended", "words"),
    [
        ("raise", "exception", 3, "A fails in the middle of its work, from 3.0 s on"),
        ("hang", "timeout", 30, "A does not answer in time, from 3.0 s on"),
    ],
    ids=["broken off", "hangs until its deadline"],
)
async def test_an_agent_is_broken_in_the_middle_of_its_call_and_the_others_answer(
    kind: Kind, reason: str, ended: float, words: str
):
    turn = start(slow_kit("a", "b"))
    await asyncio.sleep(3)
    turn.break_agent(Fault(where="a", kind=kind))
    reply = await turn
    [failure] = failures(reply)
    assert (failure.agent, failure.reason) == ("a", reason)
    assert failure.timing is not None and failure.timing.ended == pytest.approx(ended, abs=0.1)
    assert "an answer about a" in reply.text and RAW not in reply.text
    assert "b is known." in reply.text
    [broken] = [event for event in reply.events if isinstance(event.body, AgentBroken)]
    assert broken.at == pytest.approx(3, abs=0.1)
    inside = [event for event in reply.events if event.span_id == broken.span_id]
    assert [body.agent for body in bodies(inside, AgentStarted)] == ["a"]
    assert fault_lines(advance(TurnView(), reply.events)) == (words,)
    assert nothing_runs()


async def test_an_agent_that_has_not_begun_fails_when_it_is_asked():
    turn = start(slow_kit("a", "b"))
    await turn.wait_for(1)
    turn.break_agent(Fault(where="b", kind="raise"))
    reply = await turn
    assert [failure.agent for failure in failures(reply)] == ["b"]
    [wanted] = wanted_faults(reply.events)
    assert wanted.has_cost and wanted.was_asked


@pytest.mark.parametrize("moment", [AgentStarted, ToolStarted, ToolEnded])
async def test_a_reply_that_is_still_to_come_is_somebody_elses_and_after_it_a_break_comes_too_late(
    moment: type[AgentStarted] | type[ToolStarted] | type[ToolEnded],
):
    async with open_kit(EMBEDDED, faults=True) as kit:
        turn = kit.ask(QUESTION, kit.session("s"))
        async for event in turn.follow():
            if isinstance(event.body, moment) and event.body.agent == "rewards":
                turn.break_agent(Fault(where="rewards", kind="foreign_principal"))
                break
        reply = await turn
    [wanted] = wanted_faults(reply.events)
    [line] = fault_lines(advance(TurnView(), reply.events))
    is_late = moment is ToolEnded
    assert line.endswith("(changed nothing in this turn)") is is_late
    assert wanted.has_cost is not is_late and ("4,975" in reply.text) is is_late
    assert "Ember Hill Ground Coffee" in reply.text
    assert not [mark for mark in MARKS if mark in reply.text]
    if moment is ToolStarted:
        calls = [body for body in bodies(reply, ToolEnded) if body.agent == "rewards"]
        assert len(calls) == 2, "what was on its way is asked again"


async def test_a_turn_of_a_kit_without_faults_and_one_that_is_over_cannot_be_broken():
    kit = slow_kit("a", "b")
    plain = run_turn("about a and b", ALICE, kit)
    await asyncio.sleep(3)
    fault = Fault(where="a", kind="raise")
    with pytest.raises(FaultError, match="opened without faults"):
        plain.break_agent(fault)
    assert not failures(await plain)
    turn = start(kit)
    await turn
    with pytest.raises(FaultError, match="it is over"):
        turn.break_agent(fault)
