"""Flags belong to the session: one Kit serves several cohorts at once, each with a team that is bound once."""

import asyncio

import pytest

from kit.compose.prompts import plan_prompt
from kit.core.bodies.call import AgentStarted
from kit.core.bodies.turn import TurnStarted
from kit.core.context import Session
from kit.core.errors import UnknownId
from kit.runtime.handle import Reply
from kit.wire import Kit, open_kit
from tests.kits import EMBEDDED, bodies

GAMES = "which games do I have in progress"


def begun(reply: Reply) -> TurnStarted:
    return next(body for body in bodies(reply, TurnStarted))


def people(kit: Kit) -> tuple[Session, Session]:
    return kit.session("a", user="u-001"), kit.session(
        "b", user="u-002", flags={"play": False, "location_aware": False}
    )


@pytest.mark.req("PC1-S3.3")
async def test_two_users_of_one_kit_are_in_two_cohorts_at_once():
    async with open_kit(EMBEDDED) as kit:
        one, other = await asyncio.gather(*(kit.ask(GAMES, who) for who in people(kit)))
    assert "play" in one.routing.invoked and "play" not in other.routing.invoked
    assert (
        begun(one).cohort
        == plan_prompt(kit.deck.cards["orchestrator"], kit.deck).cohort
        != begun(other).cohort
    )


@pytest.mark.req("PC1-S3.3")
async def test_a_sub_agent_is_in_a_cohort_of_its_own_which_covers_its_tools_configuration():
    async with open_kit(EMBEDDED) as kit:
        asked = [
            await kit.ask(
                "find me coffee deals", kit.session(f"s{wide}", flags={"wide_search": wide})
            )
            for wide in (False, True)
        ]
    events = [event.body for reply in asked for event in reply.events]
    shops = [body for body in events if isinstance(body, AgentStarted) and body.agent == "shop"]
    assert len(shops) == 2 and all(shop.cohort for shop in shops)
    assert shops[0].cohort != shops[1].cohort, "the prompts are the same; twelve rows are not five"


@pytest.mark.req("PC1-S3.3")
async def test_a_flag_that_the_deck_does_not_declare_is_named_with_the_nearest():
    async with open_kit(EMBEDDED) as kit:
        with pytest.raises(UnknownId, match=r"flag 'plays': did you mean 'play'\?"):
            kit.ask(GAMES, kit.session("s", flags={"plays": False}))
