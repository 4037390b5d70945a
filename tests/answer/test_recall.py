"""What later agents still know, hop by hop; and the leaky variant that gives the leak matrix its scale."""

from collections import defaultdict
from dataclasses import replace

import pytest
from langchain_core.messages import BaseMessage

from kit.core.card import AgentCard, Handoff
from kit.core.context import Principal, Session
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from kit.stores.sqlite import SqliteStore
from studies import compaction
from studies.history_leaks import LeakMeter, with_full_history
from studies.recall import PATH, Recall, measure
from tests.kits import SmallKit, answering, asks, small_deck, small_kit, stitched

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


async def test_a_helper_that_carries_everything_makes_recall_whole():
    def carry(messages: list[BaseMessage]) -> Line:
        told = " ".join(str(message.content) for message in messages[:-1])
        return Line(calls=[("submit_prior_context", {"prior_context": told})])

    rows = by(await measure(dialogues=2, helper=ScriptedModel(carry)), "prior_context")
    assert all(row.in_view for hop in (1, 2, 3, 4) for row in rows[hop])


async def test_the_same_seed_tells_the_same_dialogues():
    assert await measure(dialogues=2, seed=3) == await measure(dialogues=2, seed=3)


@pytest.mark.req("SAT-26")
@pytest.mark.parametrize(("history", "warnings"), [("own", 0), ("whole", 1)])
async def test_history_that_crosses_agents_is_a_setting_with_a_warning_and_neither_pays_for_nor_opens_what_is_closed(
    history: str, warnings: int
) -> None:
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


async def test_the_leak_meter_counts_what_an_overhearing_team_is_shown():
    lead = ScriptedModel(
        lambda messages: stitched(messages) if messages[-1].type == "tool" else asks("ann", "bob")
    )
    kit = small_kit(lead, {"ann": answering("A"), "bob": answering("B")})
    counts: dict[str, int] = {}
    for name, team in (("tight", kit.team), ("leaky", with_full_history(kit.team))):
        meter = LeakMeter(team)
        session = Session(id=name, principal=WHO)
        meter.plant(kit.store, session)
        await run_turn("two things", session, replace(kit, team=meter.team))
        matrix = meter.matrix()
        counts[name] = matrix.leaks
        assert [matrix.raw[agent, agent] > 0 for agent in meter.agents] == [True, True]
        assert sum(map(sum, matrix.rows())) == sum(matrix.raw.values())
    assert counts["tight"] == 0 and counts["leaky"] >= 4


async def test_what_a_poor_summary_loses_stays_lost():
    whole, poor, none = [
        (await compaction.measure((40,), (8,), keeps))[0] for keeps in (1.0, 0.5, 0.0)
    ]
    assert whole.in_view == 1.0 > poor.in_view > none.in_view
    assert whole.summaries == poor.summaries == none.summaries > 3
    assert none.input_tokens < whole.input_tokens
