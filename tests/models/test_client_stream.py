"""What a client is told of a turn, what it is called by, and what history alone keeps (SAT-18)."""

from collections.abc import Sequence
from typing import Any

import pytest

from kit.core.bodies.speech import ResponseId, Separator, Text
from kit.core.context import OPERATOR
from kit.core.event import Event
from kit.core.outcome import AgentCall, Answer, Outcome
from kit.models.scripted import Line
from kit.runtime.context import RunContext
from kit.runtime.dispatch import fan_out
from kit.runtime.pattern import Pattern
from kit.runtime.turn import Reply, run_turn
from tests.kits import ALICE, SmallKit, answering, asks, routing, small_kit, stitched
from tests.runtime.test_continuity import chained

MIXED = "my receipt didn't scan and find me coffee deals"


def kit_of(*lead: Any, support: Any = None) -> SmallKit:
    models = {
        "support": support or answering("Scan it again."),
        "shop": answering("Coffee, 2 off."),
    }
    return small_kit(list(lead), models, support_agent="support")


def ids(events: Sequence[Event]) -> list[tuple[str, str]]:
    return [
        (event.body.agent, event.body.response_id)
        for event in events
        if isinstance(event.body, ResponseId)
    ]


# ── thinking ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("SAT-18", "SAT-10")
@pytest.mark.parametrize(
    ("message", "lead"), [("", Line("Hi.")), ("hello", asks("shop")), ("x" * 20_000, Line("Hi."))]
)
async def test_thinking_is_the_first_a_client_hears_of_any_turn_and_its_completion_the_last(
    message: str, lead: Line
):
    events = [event async for event in run_turn(message, ALICE, kit_of(lead, stitched))]
    kinds = [event.kind for event in events]
    assert kinds[:2] == ["thinking", "turn_started"] and kinds[-1] == "completed"
    if message == "hello":
        assert {"text", "agent_ended", "model_started", "usage", "routing"} <= set(kinds)
    assert [event.seq for event in events] == list(range(len(events)))
    assert [Event.model_validate_json(event.model_dump_json()) for event in events] == events


# ── response ids ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("SAT-18")
async def test_supports_answers_are_called_ft_and_every_other_by_its_provider():
    kit = kit_of()
    chained("orchestrator", routing(asks("support", "shop", query="x")), kit)
    support = chained("support", lambda _: Line("Scan it again."), kit)
    chained("shop", lambda _: Line("Coffee, 2 off."), kit)
    of_support: set[str] = set()
    for number in (1, 2):
        reply = await run_turn(MIXED, ALICE, kit)
        found = ids(reply.events)
        [ours] = [name for agent, name in found if agent == "support"]
        assert ours.startswith("ft_") and reply.turn_id in ours
        of_support.add(ours)
        assert [name for agent, name in found if agent == "shop"] == [f"resp_shop_{number}"]
        others = [name for agent, name in found if agent != "support"]
        assert len(others) == 3 and all(name.startswith("resp_") for name in others)
    assert len(of_support) == 2
    # Its chain goes on under the provider's own name.
    assert [previous for previous, _ in support.asked] == [None, "resp_support_1"]


# ── the separator ───────────────────────────────────────────────────────────────────────────────────


def history(kit: SmallKit, reader: str = "") -> list[tuple[str, str]]:
    return [(line.role, line.text) for line in kit.store.history(ALICE.key, reader)]


def separators(events: Sequence[Event]) -> list[str]:
    return [event.body.agent for event in events if isinstance(event.body, Separator)]


async def part_by_part(call: AgentCall, ctx: RunContext) -> Outcome:
    """A pattern that shows each agent's words as they are, support's set apart from the rest."""
    calls = [
        AgentCall(call_id=agent, agent=agent, query=f"about {agent}")
        for agent in ("support", "shop")
    ]
    fan = await fan_out(calls, ctx)
    said: list[str] = []
    for outcome in fan.outcomes:
        assert isinstance(outcome, Answer)
        if said:
            ctx.emit(Separator(agent=fan.outcomes[0].agent))
        said.append(f"{' ' if said else ''}{outcome.text}")
        ctx.emit(Text(channel="answer", text=said[-1]))
    return Answer(call_id=call.call_id, agent=call.agent, text="".join(said))


async def both_ways(pattern: Pattern | None) -> tuple[SmallKit, list[Event], Reply]:
    kit = kit_of(asks("support", "shop"), stitched)
    turn = run_turn(MIXED, ALICE, kit, pattern)
    return kit, [event async for event in turn], await turn


@pytest.mark.req("SAT-18")
async def test_parts_that_were_shown_apart_are_messages_of_their_own_and_no_client_hears_of_that():
    kit, heard, reply = await both_ways(Pattern("part_by_part", part_by_part))
    assert reply.text == "Scan it again. Coffee, 2 off."
    assert history(kit) == [
        ("user", MIXED),
        ("assistant", "Scan it again."),
        ("assistant", "Coffee, 2 off."),
    ]
    stored = kit.store.events(reply.turn_id, OPERATOR)
    assert separators(reply.events) == separators(stored) == ["support"]
    assert separators(heard) == [] and len(heard) == len(reply.events) - 1
    composed, _, told_once = await both_ways(None)
    assert history(composed) == [("user", MIXED), ("assistant", told_once.text)]
    of_support = [("user", "about support"), ("assistant", "Scan it again.")]
    assert history(composed, "support") == history(kit, "support") == of_support
