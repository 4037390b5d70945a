"""The shipped decks on the stand-in: what is answered is what was meant, and what nobody did is not passed over."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from kit.core.bodies.call import ToolStarted
from kit.core.card import AgentCard
from kit.patterns import PATTERNS
from kit.runtime.handle import Reply
from kit.settings import HOME, Settings
from kit.tools.tool import LimitedTool, ToolLimits
from kit.wire import open_kit
from tests.kits import OFFLINE, lead_over
from tests.service import servers

NOTHING_DONE = "I can only look things up here, and have done nothing else."


async def answers(deck: str, *sittings: str | tuple[str, ...]) -> list[str]:
    """Plays sittings on a shipped deck, each in a session of its own; returns the answer to the last turn of each."""
    settings = Settings(
        deck=HOME / "cards" / deck, store=":memory:", pace=0.0, today="2026-11-01", model="offline"
    )
    last: list[str] = []
    async with open_kit(settings) as kit:
        for number, sitting in enumerate(sittings):
            session = kit.session(f"s{number}")
            text = ""
            for turn in [sitting] if isinstance(sitting, str) else sitting:
                text = (await kit.ask(turn, session)).text
            last.append(text)
    return last


async def check_answers(deck: str, found_by_message: Mapping[str, str]) -> None:
    texts = await answers(deck, *found_by_message)
    for (message, found), text in zip(found_by_message.items(), texts, strict=True):
        assert found in text, message


async def test_an_act_that_no_agent_can_do_is_said_not_to_be_done():
    found_by_message = {
        "donate 3000 points to the food bank": "4,975 points",
        "can you redeem my points for a $3 coffee card": "costs 3,000 points",
        "ok redeem the $3 coffee card": "costs 3,000 points",
        "book me a table at Olive Court for tonight": "Olive Court",
    }
    texts = await answers("consumer", *found_by_message)
    for text, found in zip(texts, found_by_message.values(), strict=True):
        assert text.startswith(NOTHING_DONE)
        assert found in text


async def test_whoever_asks_after_an_act_or_for_one_without_naming_it_reads_that_nothing_is_done():
    act = "redeem 100 points for a gift card of Harvest Market"
    gifts = OFFLINE.with_(deck=HOME / "cards" / "gifts", store=":memory:")
    async with open_kit(gifts) as kit:
        for number, message in enumerate(("yes, do it", "ok go ahead", "did you do it?")):
            session = kit.session(f"s{number}")
            asked = await kit.ask(act, session)
            await kit.resume(asked.turn_id, False)
            text = (await kit.ask(message, session)).text
            if message == "did you do it?":
                assert text.startswith("I can't look up what was done")
            else:
                assert text.startswith("I did nothing for this")


async def test_a_receipt_or_an_offer_is_looked_up_by_its_id():
    await check_answers(
        "consumer",
        {
            "receipt rc-00034": "The Pet Pantry on 18 Oct 2026",
            "show me receipt rc-99999": 'No receipt fits "rc-99999"; this is the newest.',
            "what is on receipt rc-00040?": 'No receipt fits "rc-00040"; this is the newest.',
            "tell me about offer of-9999": 'No offer for "of-9999" was found.',
            "what games am I playing?": "Games you play (3 of 4):",
        },
    )


async def test_never_mind_asks_for_nothing():
    texts = await answers(
        "consumer", "never mind, back to the receipts", "nevermind, what games are there"
    )
    for text in texts:
        assert "mind" not in text
    assert "33 accepted" in texts[0] and "Games (3 of" in texts[1]


async def test_a_question_about_an_act_is_no_request_for_one():
    texts = await answers(
        "consumer",
        "what does it cost to redeem points",
        "order history please",
        "when did I last redeem something",
        "which receipts were returned",
    )
    for text in texts:
        assert NOTHING_DONE not in text


async def test_whoever_can_act_does_not_say_that_it_cannot():
    [text] = await answers("gifts", "redeem 9000 points for a gift card of Harvest Market")
    assert "Nothing was redeemed: the account has 5,000 points." in text
    assert NOTHING_DONE not in text


async def test_the_lookup_that_fits_the_question_is_made():
    found_by_message = {
        "how much did I spend on coffee last month": "You bought 30 items for $389.40 in all.",
        "how often did I buy bread": "You bought 3 items for $14.37 in all.",
        "which receipts were rejected": "The photo was too blurry to read",
        "will my points expire?": "Points do not expire while you use your account.",
        "how much is 4975 points in dollars": "coffee card $3 costs 3,000 points",
        "find jalapeño deals": 'No offers for "jalapeno" were found.',
    }
    await check_answers("consumer", found_by_message)


async def test_a_correction_is_about_what_was_meant():
    bought, tea = await answers(
        "consumer",
        ("what did I redeem last", "no not that, I meant what did I buy last"),
        ("find coffee deals", "no, I meant tea"),
    )
    assert bought.startswith("Purchases, newest first (3 of")
    assert tea.startswith("Tea offers:")
    sitting = ("what is Iron Wolf about", "sorry, I meant Hollow Crown")
    [title] = await answers("manga", sitting)
    assert title.startswith("Hollow Crown")


async def test_a_follow_up_is_about_what_was_shown_whoever_is_asked():
    first, second, cheapest, ended, heading = await answers(
        "consumer",
        ("find coffee deals", "what are its terms"),
        ("find coffee deals", "the second one", "what are its terms"),
        ("find pizza near me", "the cheapest"),
        ("list my receipts", "was the last one accepted"),
        "tea and coffee deals",
    )
    assert first.startswith("Terms: 200 points on Ember Hill Ground Coffee 12 oz")
    assert second.startswith("Terms: 200 points on Morning Kettle Coffee Pods 24 ct")
    assert cheapest.startswith("Pizza restaurants near Rivermont")
    assert "receipts" in ended.lower() and "A receipt is rejected" not in ended
    assert heading.startswith("Tea and coffee offers")


async def test_of_two_matters_the_one_that_names_the_thing_that_was_shown_is_about_it_alone():
    first = "show my last receipt"
    both = "when does Harvest Market open, and show my last receipt"
    (text,) = await answers("consumer", (first, both))
    assert "Harvest Market (grocery) has" in text and "open 8:00 to 21:00" in text
    assert "(rc-00036). It lists" in text and "No retailer" not in text


async def test_what_was_listed_is_meant_by_number_by_what_ends_first_and_by_how_many():
    shown = "find coffee deals"
    second, soonest, both, cheaper = await answers(
        "consumer",
        (shown, "number two"),
        (shown, "which one expires first?"),
        (shown, "compare the two"),
        ("thai food near me", "anything cheaper"),
    )
    assert second.startswith(
        "Morning kettle coffee pods 24 offers: 200 points on Morning Kettle Coffee Pods"
    )
    assert soonest.endswith(
        "200 points on Ember Hill Ground Coffee 12 oz (buy 2) at Fernfield Foods until 20 Nov 2026."
    )
    assert both.startswith("Coffee offers")
    assert "restaurants" in cheaper


async def test_each_clause_about_a_thing_that_was_shown_is_about_that_thing():
    shown = "find coffee deals"
    (terms,) = await answers("consumer", (shown, "#2 please, until when is it?"))
    assert terms.startswith("Terms: 200 points on Morning Kettle Coffee Pods 24 ct until 18 Dec")


async def test_whoever_takes_a_question_back_is_asked_nothing_and_told_nothing():
    for text in await answers("consumer", ("find coffee deals", "never mind"), "olvídalo", "stop"):
        assert not any(letter.isdigit() for letter in text) and "help article" not in text


async def test_questions_to_the_library_reach_whoever_is_for_them():
    found_by_message = {
        "What should I read next?": "volumes",
        "what is Iron Wolf about, and Hollow Crown": "Hollow Crown, the Departure",
        "Compare Iron Wolf with Hollow Crown": "Hollow Crown: 90 of 100",
    }
    await check_answers("manga", found_by_message)


async def test_a_question_beside_an_open_one_is_no_answer_to_it():
    sitting = ("redeem 100 points for a gift card of Harvest Market", "how many points do I have")
    [text] = await answers("gifts", sitting)
    assert text == "The account has 5,000 points."


async def test_what_can_be_asked_is_told_in_the_words_of_the_cards():
    settings = Settings(deck=HOME / "cards" / "manga", store=":memory:", pace=0.0, model="offline")
    async with open_kit(settings) as kit:
        reply = await kit.ask("how do I cook rice", kit.session("s"))
    assert reply.status == "failed"
    assert "You can ask about what to read next, or about how titles compare" in reply.text


OUTLETS = {
    "missing": "What does the pumpkin soup cost on the menu of ou-0003?",
    "there": "what does the cheddar soup cost at ou-0003",
    "note": "leave a note on ou-0003: fridge broken",
    "added note": "add a note to ou-0412: the door is broken",
    "least": "Which outlets in Oakfield earned the least?",
    "no outlet": "what is on the menu?",
    "terrace": "find outlets with a terrace",
    "where": ("show me ou-0003", "and its opening hours?", "where is it"),
    "owner": ("show me ou-0003", "and its opening hours?", "who owns it"),
}
"""Sittings about outlets, each in a session of its own."""


@pytest.fixture(scope="module")
def outlets() -> dict[str, str]:
    """The answer to each of OUTLETS, of one kit: it starts the skill service, which takes longer than all of them."""
    texts = asyncio.run(answers("outlets", *OUTLETS.values()))
    return dict(zip(OUTLETS, texts, strict=True))


def test_a_dish_that_is_not_on_the_menu_is_said_not_to_be_there(outlets: dict[str, str]):
    missing = outlets["missing"]
    assert missing.startswith('No item called "pumpkin soup" is on the menu of Juniper Kettle.')
    assert "The closest there: 4 items in all." in missing
    assert outlets["there"].startswith("Juniper Kettle: 2 items in all.")
    assert outlets["note"].startswith(NOTHING_DONE)
    assert outlets["added note"].startswith(NOTHING_DONE)
    assert outlets["least"].startswith("What I found is not narrowed to “the least”.")
    assert outlets["no outlet"] == "For that I need the outlet id."


@pytest.mark.realtime
async def test_a_plan_about_an_outlet_that_is_not_there_is_not_done(tmp_path: Path):
    request = "Which items on the menu of ou-9999 are vegetarian, with their prices"
    # Its services run in this process: one of their own takes more than a second to start.
    key = {"SKILL_SERVICE_KEY": servers.KEYS["acme"]}
    async with servers.outlets(tmp_path, variables=key) as api:
        session = api.kit.session("s", "acme", "alice")
        reply = await api.kit.ask(request, session, "plan_execute")
    assert reply.status == "failed"
    assert "I wasn't able to finish this" in reply.text
    assert "I did this" not in reply.text


async def test_one_agent_with_every_tool_stores_an_opinion_only_of_whoever_voices_one():
    settings = Settings(store=":memory:", pace=0.0, today="2026-11-01", model="offline")
    monolith = PATTERNS["monolith"]
    questions = (
        "lunch near the office that isn't expensive. Also: what's a good swap for butter when I bake",
        "stores in Stonebridge. and I want to sit down and work with a latte",
        "is The Pet Pantry any closer than Paws & Whiskers. and itemize my last trip to the supermarket",
    )
    async with open_kit(settings) as opened:
        kit = replace(opened, team=opened.stages.team(monolith))
        for message in questions:
            reply = await kit.ask(message, kit.session(message), monolith)
            assert "llm_feedback" not in tools_of(reply), message
        session = kit.session("complaint")
        await kit.ask("what are my points worth", session, monolith)
        reply = await kit.ask("your last answer was no help at all", session, monolith)
        assert "llm_feedback" in tools_of(reply)


def tools_of(reply: Reply) -> list[str]:
    return [event.body.tool for event in reply.events if isinstance(event.body, ToolStarted)]


async def test_what_nothing_found_speaks_of_is_said_beside_what_was_found():
    sittings = {
        ("find a sandwich shop near me", "are they open now"): ("“open”", "Sandwich restaurants"),
        ("how many points do I have", "will they expire"): ("“expire”", "4,975 points"),
        ("show my last receipt", "how much of it was tax"): ("“tax”", "It lists"),
    }
    texts = await answers("consumer", *sittings)
    for (sitting, found), text in zip(sittings.items(), texts, strict=True):
        for words in found:
            assert words in text, sitting
    spoken_of = (
        ("what coffee offers are there", "do they expire soon"),
        ("find a sandwich shop near me", "how far are they"),
        ("stores near me", "are they open now"),
        ("show my last receipt", "what did it cost"),
    )
    for text in await answers("consumer", *spoken_of):
        assert "says nothing about" not in text


async def test_what_is_written_nearly_like_a_word_is_offered_and_not_taken_for_it():
    texts = await answers("consumer", "find coffe deals", "any deals on zzyzx")
    for text, name, offered in zip(texts, ("coffe", "zzyzx"), (True, False), strict=True):
        assert text.startswith(f'No offers for "{name}" were found.')
        assert ("Ground Coffee" in text) == offered


async def test_a_condition_that_nothing_found_speaks_of_is_said():
    texts = await answers(
        "consumer",
        "deals on pasta without gluten",
        "any italian place with outdoor seating",
        "find coffee deals with cashback",
        "stores with a pharmacy",
    )
    assert [text.startswith("What I found says nothing about") for text in texts] == [
        True,
        True,
        False,
        False,
    ]
    assert "“gluten”" in texts[0] and "Pasta offers" in texts[0]


async def test_an_amount_or_a_time_that_nothing_was_looked_up_by_is_said():
    narrowings = {
        "are there any coffee deals under 100 points?": "under 100 points",
        "find pizza deals over 700 points": "over 700 points",
        "what did I buy yesterday?": "yesterday",
        "how many points did I earn in August?": "in August",
    }
    for text, words in zip(
        await answers("consumer", *narrowings), narrowings.values(), strict=True
    ):
        assert text.startswith(f"What I found is not narrowed to “{words}”. Here is what I have.")
    for text in await answers(
        "consumer", "which offers end within 7 days?", "show my last receipt"
    ):
        assert "not narrowed" not in text


async def test_of_several_things_of_one_request_each_is_there_or_is_said_not_to_be():
    found_by_message = {
        "is there a burger place nearby and a sushi place?": (
            "Patty Works",
            "for “sushi” were found",
        ),
        "find a thai place and an italian place": (" thai,", " italian,"),
        "find deals on coffee, tea and pizza": ("Coffee 12 oz", "Tea 20 ct", "Pizza 20 oz"),
        "find deals on coffee and sushi": ("Coffee offers", "No offers for “sushi” were found"),
        "tell me the opening hours of Fernfield Foods and Harvest Market": (
            "2.8 miles",
            "1.8 miles",
        ),
        "how many points for the Harvest Market gift card and the Movie night card?": (
            "Harvest Market gift card $5 costs",
            "Movie night card $12 costs",
        ),
        "does the juice deal end this week?": ("No offer for juice ends within", "Juice 64 oz"),
        "coffee pods at Pantry & Vine": ("Coffee Pods 24 ct", "Pantry & Vine"),
    }
    texts = await answers("consumer", *found_by_message)
    for (message, words), text in zip(found_by_message.items(), texts, strict=True):
        for found in words:
            assert found in text.replace('"sushi"', "“sushi”"), message


async def test_what_is_to_be_left_out_is_left_out():
    messages = (
        "find deals that are not coffee",
        "show me everything but coffee deals",
        "don't show me coffee deals, just tea deals",
        "find tea deals without green tea",
    )
    *without_coffee, without_green_tea = await answers("consumer", *messages)
    (rest,) = await answers(
        "consumer", ("coffee, tea and pizza deals", "deals that are not coffee")
    )
    assert "Tea and pizza offers without coffee" in rest
    for text in without_coffee:
        assert "ffers without coffee" in text and " Coffee " not in text
    assert without_coffee[-1].startswith("Tea offers without coffee")
    assert "Black Tea" in without_green_tea and "Green Tea" not in without_green_tea


def test_outlets_with_what_no_outlet_tells_are_not_all_of_them_unsaid(outlets: dict[str, str]):
    assert outlets["terrace"].startswith(
        "What I found says nothing about “terrace”. Here is what I have."
    )


def test_a_follow_up_is_about_the_one_thing_that_was_shown(outlets: dict[str, str]):
    assert "ou-0003) stands at" in outlets["where"]
    assert outlets["owner"].startswith("What I found says nothing about “owns”.")
    assert "ou-0003) stands at" in outlets["owner"]


async def test_what_is_asked_again_and_goes_over_the_limit_is_owned_up_to():
    five = "how many points do I have, find coffee deals, find thai restaurants, what games can I play, my receipt didn't scan"
    (again,) = await answers("consumer", (five, "go on", "try again"))
    assert "I left out" in again


async def test_a_choice_among_what_was_shown_that_no_lookup_makes_is_said_not_to_be_made():
    (cheapest,) = await answers("consumer", ("find coffee deals", "which of them is the cheapest?"))
    assert cheapest.startswith("What I found is not narrowed to “the cheapest”.")


async def test_a_number_and_what_is_counted_in_packs_reach_a_lookup_as_they_are_meant():
    asked: list[str] = []

    async def stock(product: str) -> str:
        """Says how many packs of a product are in stock."""
        asked.append(product)
        return "4 packs."

    async def bill(number: str) -> str:
        """Says what a bill is over, by its number."""
        asked.append(number)
        return "950 euros."

    words = (
        "Says how many packs of tea or coffee are in stock, and what a bill is over, by its number."
    )
    office = AgentCard(id="office", description=words, model="offline", tools=("stock", "bill"))
    async with open_kit(OFFLINE, deck=lead_over(office), tools=[stock, bill]) as kit:
        for question in ("How many packs of tea are in stock?", "what is bill 7 over?"):
            await kit.ask(question, kit.session(question))
    assert asked == ["tea", "7"]


async def test_a_question_makes_no_act_that_nobody_asked_for():
    ordered: list[str] = []

    async def find_medicine(name: str) -> str:
        """Says whether a medicine is in stock."""
        return f"{name}: 7 packs are in stock."

    async def order_food(product: str) -> str:
        """Orders special food, or a wormer."""
        ordered.append(product)
        return f"{product} is ordered."

    words = "Knows the pharmacy of the clinic: whether a medicine, a wormer or special food is in stock; orders food."
    pharmacy = AgentCard(
        id="pharmacy", description=words, model="offline", tools=("find_medicine", "order_food")
    )
    tools = [find_medicine, LimitedTool(order_food, ToolLimits(once=True))]
    async with open_kit(OFFLINE, deck=lead_over(pharmacy), tools=tools) as kit:
        for question in ("do you have wormer for cats?", "is special food in stock?"):
            reply = await kit.ask(question, kit.session(question))
            assert "in stock" in reply.text and not ordered, question
        await kit.ask("please order special food", kit.session("an order"))
    assert len(ordered) == 1


async def test_a_project_that_is_made_anew_answers_for_two_people_and_for_no_other_day(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(HOME / "template")
    async with open_kit(OFFLINE.with_(deck=HOME / "template/deck")) as kit:
        sunday = await kit.ask("Which room is free on Sunday?", kit.session("a"))
        friday = await kit.ask("Which room is free on Friday?", kit.session("b"))
        both = "Which laptop does Ana have and which one has Ben?"
        laptops = await kit.ask(both, kit.session("c"))
    assert sunday.text == "I know of nothing on Sunday."
    assert friday.text.startswith("Free on Friday")
    assert "Ana has Model 14" in laptops.text and "Ben has Model 16" in laptops.text
