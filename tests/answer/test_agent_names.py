"""What people read in place of the ids of agents: the names that their cards give them, in answers and on the terminal."""

import io
from collections.abc import Sequence

import pytest

from kit.cli.story import Story
from kit.core.card import AgentCard
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.turn import run_turn
from kit.wire import open_kit
from tests.kits import ALICE, EMBEDDED, answering, asks, small_kit

POINTS_AND_RECEIPTS = "my receipts and how many points do I have"


def test_an_agent_without_a_name_is_called_by_the_words_of_its_id():
    unnamed = AgentCard(id="offer_details", description="Terms.")
    assert unnamed.label == "offer details"
    assert unnamed.replace(name="terms of offers").label == "terms of offers"


@pytest.mark.parametrize(
    ("faults", "sentence"),
    [
        ([], "**E-receipts:** You have 36 receipts"),
        (["ereceipts=raise"], "an answer about e-receipts"),
        (["ereceipts=partial_envelope"], "About e-receipts: some sources"),
    ],
)
async def test_an_answer_names_an_agent_as_its_card_does(faults: Sequence[str], sentence: str):
    async with open_kit(EMBEDDED, faults=True) as kit:
        turn = kit.ask(POINTS_AND_RECEIPTS, kit.session("s"), faults=faults)
        terminal = io.StringIO()
        story = Story(terminal, "offline", kit.deck.cards)
        async for event in turn:
            story.tell(event)
        reply = await turn
    assert sentence in reply.text
    assert "ereceipts" not in f"{reply.preamble} {reply.text}".lower()
    assert "e-receipts: asked" in terminal.getvalue()
    assert "ereceipts" not in terminal.getvalue().lower()


async def test_what_was_left_out_and_what_failed_is_owned_up_to_by_name():
    models = {"a": ScriptedModel(Line(error=OSError())), "b": answering("B is known.")}
    cards = [
        AgentCard(
            id=agent, name=f"department {agent}", description=f"About {agent}.", model="offline"
        )
        for agent in models
    ]
    lead = [asks("a", "b"), Line("Well."), Line("Well.")]
    kit = small_kit(lead, models, cards=cards, cap=1)
    reply = await run_turn("about a and about b", ALICE, kit)
    assert "about department a" in reply.text and "left out department b" in reply.text
