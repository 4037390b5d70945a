"""What this project promises. Run it with `python -m pytest`."""

import asyncio

from kit import Settings, load_deck, open_kit

SETTINGS = Settings.read().with_(store=":memory:", pace=0.0, model="offline")


def test_the_deck_has_no_fault():
    assert load_deck(SETTINGS.deck).warnings == ()


def test_each_part_of_a_question_goes_to_the_agent_that_knows_it():
    async def ask():
        async with open_kit(SETTINGS) as kit:
            return await kit.ask(
                "Which laptop does Ana have, and which room is free on Friday?", kit.session("test")
            )

    reply = asyncio.run(ask())
    assert set(reply.routing.invoked) == {"devices", "rooms"}
    assert "Model 14" in reply.text and "Garden" in reply.text
