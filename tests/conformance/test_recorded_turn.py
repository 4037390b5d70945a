"""A stored turn beside a plain loop: the same calls, answers and faults, and what its user would have read."""

from dataclasses import replace

import pytest

from kit.conformance.recorded_turn import (
    Fate,
    PlainTurn,
    Recording,
    parts_in,
    play_plain,
    recording_of,
    scenario_of,
)
from kit.core.bodies.turn import Routing
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.turn import Reply
from kit.wire import Kit, open_kit
from tests.kits import OFFLINE, bodies

MESSAGE = "How many points do I have, and find coffee deals"


async def recorded(kit: Kit, *faults: str, cap: int | None = None) -> tuple[Reply, Recording]:
    reply = await kit.ask(MESSAGE, kit.session("beside"), cap=cap, faults=faults)
    turn = kit.store.turn(reply.turn_id, kit.session("beside").principal)
    assert turn is not None
    return reply, recording_of(kit.store, turn, kit.team.root)


async def played(kit: Kit, recording: Recording, *, best: bool, says: str = "") -> PlainTurn:
    """A plain loop over a recording, worded by the kit's own composer, or by one that always says the same."""
    composer = kit.team.orchestrator.model
    if says:
        composer = replace(composer, runnable=ScriptedModel(lambda _: Line(says)))
    return await play_plain(recording, composer, best=best, seconds=30.0)


def fates(turn: PlainTurn) -> dict[str, Fate]:
    return {part.agent: part.fate for part in turn.parts}


@pytest.mark.req("K-36")
async def test_where_nothing_fails_a_plain_loop_says_the_same():
    async with open_kit(OFFLINE, faults=True) as kit:
        reply, recording = await recorded(kit)
        assert recording.gap == ""
        for best in (False, True):
            turn = await played(kit, recording, best=best)
            assert (turn.error, turn.text) == ("", reply.text)
            assert fates(turn) == {"rewards": "answered", "shop": "answered"}


@pytest.mark.req("K-36")
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("rewards=raise", "It raised ChildError"),
        ("rewards=hang", "It was still waiting for rewards"),
    ],
)
async def test_one_failure_takes_the_answers_of_all_from_a_plain_loop(fault: str, error: str):
    async with open_kit(OFFLINE, faults=True) as kit:
        reply, recording = await recorded(kit, fault)
        turn = await played(kit, recording, best=False)
        assert turn.text == "" and turn.error.startswith(error)
        assert fates(turn) == {"rewards": "silent", "shop": "lost"}
        ours = {part.agent: part.fate for part in parts_in(reply.text, recording)}
        assert ours == {"rewards": "owned_up", "shop": "answered"}


@pytest.mark.req("K-36")
async def test_at_its_best_it_shows_the_exception_or_believes_what_its_model_makes_up():
    async with open_kit(OFFLINE, faults=True) as kit:
        _, recording = await recorded(kit, "rewards=raise")
        shop = recording.outcomes["shop"].model_dump()["text"]
        raw = await played(kit, recording, best=True)
        assert fates(raw) == {"rewards": "raw", "shop": "answered"}
        invented = await played(
            kit, recording, best=True, says=f"Your rewards are 7,312 points. {shop}"
        )
        assert fates(invented) == {"rewards": "made_up", "shop": "answered"}
        assert [part.is_lost for part in invented.parts] == [True, False]
        honest = await played(kit, recording, best=True, says=f"I could not reach rewards. {shop}")
        assert fates(honest) == {"rewards": "owned_up", "shop": "answered"}


@pytest.mark.req("K-36")
async def test_what_was_never_stored_is_not_played():
    async with open_kit(OFFLINE, faults=True) as kit:
        _, foreign = await recorded(kit, "rewards=foreign_principal")
        assert foreign.gap.startswith("rewards was sent somebody else's data")


@pytest.mark.req("K-36")
@pytest.mark.parametrize(
    ("faults", "cap", "scenario"),
    [
        ((), None, "all_well"),
        (("rewards=hang",), None, "hangs"),
        (("rewards=raise", "shop=raise"), None, "all_fail"),
        (("rewards=foreign_principal",), None, "foreign_data"),
        ((), 1, "over_cap"),
    ],
)
async def test_a_turn_is_held_against_the_scenario_that_comes_nearest(
    faults: tuple[str, ...], cap: int | None, scenario: str
):
    async with open_kit(OFFLINE, faults=True) as kit:
        reply, _ = await recorded(kit, *faults, cap=cap)
        (routing,) = bodies(reply, Routing)
        assert scenario_of(routing.decision).id == scenario
