"""What later agents still know, hop by hop; and the leaky variant that gives the leak matrix its scale."""

from collections import defaultdict

import pytest

from kit.core.card import AgentCard, Handoff
from kit.core.context import Principal, Session
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from kit.stores.sqlite import SqliteStore
from studies.recall import PATH, Recall, measure
from tests.kits import SmallKit, answering, asks, small_deck, stitched

WHO = Principal(tenant_id="acme", user_id="alice")


def by(rows: list[Recall], way: str) -> dict[int, list[Recall]]:
    found: dict[int, list[Recall]] = defaultdict(list)
    for row in rows:
        if row.way == way:
            found[row.hop].append(row)
    return found


@pytest.mark.req("SAT-26")
async def test_everything_knows_all_and_reads_all_and_an_own_history_neither():
    rows = await measure(dialogues=3)
    everything, own, prior = (
        by(rows, way) for way in ("everything", "own history", "prior_context")
    )
    assert {row.agent for row in rows} == set(PATH[1:])
    assert all(
        row.in_view and row.foreign == 2 * hop for hop in (1, 2, 3, 4) for row in everything[hop]
    )
    assert not any(row.in_view or row.foreign for hop in (1, 2, 3, 4) for row in own[hop])
    assert all(row.foreign == 0 for hop in (1, 2, 3, 4) for row in prior[hop])
    assert {row.fact for row in prior[1] if row.in_view} >= {"offer", "id"}
    assert max(row.tokens for row in prior[4]) < min(row.tokens for row in everything[4])


@pytest.mark.req("SAT-26")
@pytest.mark.parametrize(("history", "warnings"), [("own", 0), ("whole", 1)])
async def test_history_that_crosses_agents_is_a_setting_with_a_warning_and_neither_pays_for_nor_opens_what_is_closed(
    history: str, warnings: int
):
    shut = AgentCard(id="shut", description="Shut.", model="offline", handoff=Handoff(closed=True))
    lead = ScriptedModel(asks("ann"), stitched, asks("bob", "shut"), stitched)
    bob, closed, helper = (
        answering("B"),
        answering("C"),
        ScriptedModel(lambda _: Line("ann was asked")),
    )
    models = {
        "ann": answering("said by ann"),
        "bob": bob,
        "shut": closed,
        "helper": helper,
        "orchestrator": lead,
    }
    deck = small_deck(["ann", "bob", "shut"], [shut], history=history)
    assert sum("reads what was said to the others" in line for line in deck.warnings) == warnings
    kit = SmallKit(bind(deck, models), SqliteStore(":memory:"))
    session = Session(id="s", principal=WHO)
    for message in ("one", "two"):
        await run_turn(message, session, kit)
    told = [str(message.content) for message in bob.seen[0][1:]]
    assert told == (["about bob"] if history == "own" else ["one", "said by ann", "about bob"])
    assert len(closed.seen[0]) == 2 and "said by ann" not in str(closed.seen)
    assert len(helper.seen) == (history == "own"), "who reads everything needs no prior_context"
