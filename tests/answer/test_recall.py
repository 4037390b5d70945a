"""What later agents still know, hop by hop; and the leaky variant that gives the leak matrix its scale."""

import pytest

from kit.core.card import AgentCard, Handoff
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from kit.stores.sqlite import SqliteStore
from tests.kits import ALICE, SmallKit, answering, asks, small_deck, stitched


@pytest.mark.req("SAT-26")
@pytest.mark.parametrize(("history", "warnings"), [("own", 0), ("whole", 1)])
async def test_history_that_crosses_agents_is_a_setting_with_a_warning_and_neither_pays_for_nor_opens_what_is_closed(
    history: str, warnings: int
):
    shut = AgentCard(id="shut", description="Shut.", model="offline", handoff=Handoff(closed=True))
    lead = ScriptedModel(asks("ann"), stitched, asks("bob", "shut"), stitched)
    helper = ScriptedModel(lambda _: Line("ann was asked"))
    ann, bob, closed = answering("said by ann"), answering("B"), answering("C")
    models = {"ann": ann, "bob": bob, "shut": closed, "helper": helper, "orchestrator": lead}
    deck = small_deck(["ann", "bob", "shut"], [shut], history=history)
    assert sum("reads what was said to the others" in line for line in deck.warnings) == warnings
    kit = SmallKit(bind(deck, models), SqliteStore(":memory:"))
    for message in ("one", "two"):
        await run_turn(message, ALICE, kit)
    told = [str(message.content) for message in bob.seen[0][1:]]
    assert told == (["about bob"] if history == "own" else ["one", "said by ann", "about bob"])
    assert len(closed.seen[0]) == 2 and "said by ann" not in str(closed.seen)
    assert len(helper.seen) == (history == "own"), "who reads everything needs no prior_context"
