"""The consumer deck on the embedded model and services: real turns, checked against the data's one true answer."""

import re

import pytest

from kit.wire import open_kit
from kit.worlds.consumer.world import load_world, truth
from tests.kits import EMBEDDED

MIXED = "my receipt didn't scan, how many points do I have, and find coffee deals"


@pytest.mark.req("PC1-S4.3", "PC1-FR-3", "PC2-FR-6", "PC1-S9.2-3")
async def test_a_mixed_question_gets_its_one_true_answer_composed_from_three_agents():
    async with open_kit(EMBEDDED) as kit:
        session = kit.session("s")
        reply = await kit.ask(MIXED, session)
        true = truth(load_world(EMBEDDED.data), session.principal, "coffee")
    assert set(reply.routing.invoked) == {"support", "rewards", "shop"}
    assert f"{true.points:,}" in reply.text
    shown = {
        c.payload["id"]
        for o in reply.outcomes
        if o.kind == "answer"
        for c in o.components
        if c.type == "offer"
    }
    assert shown and shown <= true.offer_ids
    assert re.search(r"scan", reply.text)


@pytest.mark.req("SAT-1", "PC2-AC-3", "PC1-S9.2-3")
async def test_at_natural_pace_preamble_and_whole_answer_come_within_their_bars():
    async with open_kit(EMBEDDED.with_(pace=1.0)) as kit:
        await kit.ask("hello", kit.session("warm"))
        reply = await kit.ask(MIXED, kit.session("s"))
    first = next(e for e in reply.events if e.kind == "text")
    assert first.at <= 0.5
    assert reply.events[-1].at <= 2.0
    agents = [s for s in reply.trace.spans if s.kind == "agent"]
    assert len(agents) == 3 and max(a.started for a in agents) < min(a.ended or 9 for a in agents)


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("what time does costco close on sundays", 'No retailer called "costco" was found'),
        ("is trader joe in the program", 'No retailer called "trader joe" was found'),
        ("Is Ember Pizza open now?", 'No retailer called "ember pizza" was found'),
        (
            "when does Fresh Harbor Market open?",
            'No retailer called "fresh harbor market" was found',
        ),
        ("is there a Garden Lane store?", 'No retailer called "garden lane" was found'),
        (
            "what are the opening hours of Sunny Pharmacy?",
            'No retailer called "sunny pharmacy" was found',
        ),
        ("any good ramen spots w bonus points", 'No restaurant offers for "ramen" were found'),
        ("show me the total on my ikea receipt pls", 'No receipt fits "ikea"'),
        ("what was the total on my last receipt", "It lists"),
    ],
)
async def test_what_nobody_has_is_named_without_the_other_words_of_the_question(
    question: str, sentence: str
):
    async with open_kit(EMBEDDED) as kit:
        reply = await kit.ask(question, kit.session("s"))
    assert sentence in reply.text
    assert "you use most" not in reply.text, "another store's hours are no answer"
    if "No " not in sentence:
        assert "No receipt fits" not in reply.text


async def test_what_was_spent_at_a_shop_is_added_up_of_what_was_bought_there_alone():
    async with open_kit(EMBEDDED) as kit:
        reply = await kit.ask("what did I spend at The Pet Pantry?", kit.session("s"))
    assert "You bought 23 items for $675.77 in all." in reply.text
    assert "Pet pantry purchases" in reply.text


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        ("find battery deals", "thanks. coffee deals", "Coffee offers"),
        ("find cheese", "and on bread", "Bread products"),
        (
            "find coffee deals",
            "only at Harvest Market",
            "Coffee offers:\n- 200 points on Morning Kettle Coffee Pods 24 ct (buy 2) at Harvest Market",
        ),
        ("find pizza near me", "and in Oakfield?", "Pizza restaurants near Oakfield"),
    ],
)
async def test_what_is_named_anew_takes_the_place_of_what_was_named_before(
    first: str, second: str, sentence: str
):
    async with open_kit(EMBEDDED) as kit:
        session = kit.session("s")
        await kit.ask(first, session)
        reply = await kit.ask(second, session)
    assert sentence in reply.text
    assert "attery" not in reply.text and "heese" not in reply.text


async def test_a_question_that_nobody_got_to_see_is_what_try_again_asks():
    async with open_kit(EMBEDDED, faults=True) as kit:
        session = kit.session("s")
        failed = await kit.ask("find pizza near me", session, faults=["orchestrator=routing_fails"])
        assert "Please try again in a moment" in failed.text
        reply = await kit.ask("try again", session)
    assert reply.routing.invoked == ("restaurants",)
    assert "Pizza restaurants near" in reply.text


async def test_what_an_answer_says_beside_another_is_not_called_left_out():
    async with open_kit(EMBEDDED) as kit:
        session = kit.session("s")
        reply = await kit.ask(
            "does Harvest Market take ereceipts and how many offers do they have", session
        )
        next_one = await kit.ask("and Corner Basket?", session)
    assert "takes eReceipts" in reply.text and "left out" not in reply.text
    assert "Corner Basket (grocery) has" in next_one.text and "eReceipts" in next_one.text
    assert "Harvest Market" not in next_one.text


async def test_the_second_one_is_looked_up_by_what_was_shown():
    async with open_kit(EMBEDDED) as kit:
        session = kit.session("s")
        listed = await kit.ask("find coffee deals", session)
        reply = await kit.ask("the second one", session)
    second = listed.text.splitlines()[2].removeprefix("- ")
    assert second.startswith("200 points on Morning Kettle Coffee Pods") and second in reply.text
