"""A turn that ends while its agents are at work accounts for every one of them: who had finished,
who had not, and why."""

import asyncio
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.core.bodies.call import AgentError
from kit.core.bodies.memory import ContextCarried
from kit.core.card import Policy
from kit.core.context import OPERATOR
from kit.core.outcome import Answer, Failure
from kit.core.record import Message
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.clock import run_virtual
from kit.runtime.turn import Reply, run_turn
from tests.kits import ALICE, SmallKit, answering, asks, bodies, failing, failures, small_kit

Ends = Literal["deadline", "cancelled"]
TENTHS = st.integers(min_value=1, max_value=90)


def stage(paces: list[int], broken: list[bool], cap: int, ends_at: float, end: Ends) -> SmallKit:
    """Agents that need so many tenths of a second each; some of them fail then."""
    models = {
        f"a{i}": failing(OSError("x"), pace / 10) if bad else answering(f"found-{i}", pace / 10)
        for i, (pace, bad) in enumerate(zip(paces, broken, strict=True))
    }
    budget: dict[str, Any] = {"turn_budget_ms": round(ends_at * 1000)} if end == "deadline" else {}
    own = Policy(time_budget_ms=7_777)
    return small_kit(
        [asks(*models), Line("never said", delay=600)], models, cap=cap, defaults=own, **budget
    )


async def ended(kit: SmallKit, ends_at: float, end: Ends) -> Reply:
    turn = run_turn("many things", ALICE, kit)
    if end == "cancelled":
        await asyncio.sleep(ends_at)
        turn.cancel()
    return await turn


@pytest.mark.req("PC2-FR-15", "PC2-AC-10")
@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(TENTHS, st.booleans()), min_size=1, max_size=6),
    st.integers(min_value=1, max_value=6),
    TENTHS,
    st.sampled_from(["deadline", "cancelled"]),
)
def test_every_agent_of_an_interrupted_turn_has_its_outcome(
    agents: list[tuple[int, bool]], cap: int, tenths: int, end: Ends
):
    ends_at = tenths / 10 + 0.05  # never at the moment at which an agent ends
    kit = stage([pace for pace, _ in agents], [bad for _, bad in agents], cap, ends_at, end)
    reply = run_virtual(ended(kit, ends_at, end))
    assert (reply.status, reply.events[-1].at) == (end, pytest.approx(ends_at))
    ran = agents[:cap]
    assert [outcome.agent for outcome in reply.outcomes] == [f"a{i}" for i in range(len(ran))]
    for (pace, bad), outcome in zip(ran, reply.outcomes, strict=True):
        had_ended = pace / 10 < min(ends_at, 7.777)
        if had_ended and not bad:
            assert isinstance(outcome, Answer) and outcome.text in reply.text
        else:
            assert isinstance(outcome, Failure)
            assert (outcome.reason == "exception") is had_ended
            assert outcome.reason != "cancelled" or end == "cancelled"
    routing = reply.routing
    assert [line.agent for line in routing.outcomes] == list(routing.invoked)
    assert routing.intent_count == len(routing.outcomes) + len(routing.dropped) == len(agents)
    wrong = sorted(body.agent for body in bodies(reply, AgentError))
    stored = kit.store.turn(reply.turn_id, OPERATOR)
    assert wrong == [outcome.agent for outcome in failures(reply)]
    # What was stopped has not failed.
    lost = sorted(failure.agent for failure in failures(reply) if failure.reason != "cancelled")
    assert stored and stored.invoked == routing.invoked and sorted(stored.failed) == lost


async def test_a_call_that_never_began_is_told_as_such():
    slow = Line(delay=60, calls=[("submit_prior_context", {"prior_context": "beans"})])
    kit = small_kit(
        ScriptedModel(asks("a"), slow), {"a": answering("A")}, turn_budget_ms=2_000, helper_ms=9_000
    )
    told = [
        Message(turn_id="t0", role="user", text="beans"),
        Message(turn_id="t0", role="assistant", text="Here."),
    ]
    reply = await run_turn("one thing", ALICE, kit, history=told, in_play=("b",))
    assert reply.status == "deadline" and not any(
        isinstance(e.body, ContextCarried) for e in reply.events
    )
    assert [(o.agent, o.kind, getattr(o, "reason", "")) for o in reply.outcomes] == [
        ("a", "failure", "timeout")
    ]
    assert reply.text == "I wasn't able to get an answer about a right now."
