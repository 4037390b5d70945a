"""What an answer left out and offered to take next is taken next, when the user says so."""

import pytest

from kit.compose.parts import Guards
from kit.core.card import AgentCard
from kit.models.scripted import Line, Script, ScriptedModel
from kit.runtime.turn import run_turn
from kit.wire import open_kit
from tests.kits import (
    ALICE,
    OFFLINE,
    SmallKit,
    agents_asked,
    answering,
    lead_over,
    small_kit,
    stitched,
)

FIRST = "how many points do I have, find coffee deals, and is my refund through?"
OWED = "is my refund through"
COMPOSED = (
    f"From rewards. From shop. I left out “{OWED}” for now; ask me again and I'll take it next."
)


def line(*calls: tuple[str, str], text: str = "Let me look.") -> Line:
    made = [
        (f"ask_{agent}", {"query": query, "intent_count": len(calls)}) for agent, query in calls
    ]
    return Line(text, calls=made)


def kit_that_forgets(*then: Script) -> SmallKit:
    """The lead calls for two of three parts, counts two, and composes; then come the other lines."""
    models = {agent: answering(f"From {agent}.") for agent in ("shop", "support", "rewards")}
    first = line(("rewards", "how many points do I have"), ("shop", "find coffee deals"))
    return small_kit(
        ScriptedModel(first, COMPOSED, *then),
        models,
        guards=Guards(),
        default_sub_agent="shop",
        support_agent="support",
    )


@pytest.mark.req("PC2-S5.4c")
@pytest.mark.parametrize(
    "words",
    [
        "go on",
        "yes please",
        "yes please take the rest now",
        "the other part please",
        "What did you leave out?",
        "¿Qué has dejado fuera?",
        "sí, por favor",
        "sigue con lo que falta",
    ],
)
async def test_what_was_left_out_is_asked_next_in_the_users_own_words(words: str):
    kit = kit_that_forgets(line(("support", "the refund")), stitched)
    first = await run_turn(FIRST, ALICE, kit)
    assert f"“{OWED}”" in first.text
    second = await run_turn(words, ALICE, kit)
    assert agents_asked(second) == [("support", OWED)]
    assert second.text == "From support." and second.routing.left_out.count == 0


@pytest.mark.req("PC2-S5.4c")
async def test_what_was_taken_is_not_taken_again():
    kit = kit_that_forgets(line(("support", OWED)), stitched, "You're welcome.")
    await run_turn(FIRST, ALICE, kit)
    await run_turn("go on", ALICE, kit)
    third = await run_turn("yes please", ALICE, kit)
    assert agents_asked(third) == []


async def test_another_question_is_asked_as_it_is():
    kit = kit_that_forgets(line(("shop", "tea deals")), stitched)
    await run_turn(FIRST, ALICE, kit)
    second = await run_turn("go on holiday deals", ALICE, kit)
    assert agents_asked(second) == [("shop", "go on holiday deals")]


async def test_a_bare_yes_answers_the_question_that_was_asked():
    question = "I can open a ticket. Shall I?"
    models = {"support": answering(question), "rewards": answering("From rewards.")}
    first_calls = line(("rewards", "how many points do I have"), ("support", "my app crashed"))
    composed = f"I left out “{OWED}” for now. From rewards. {question}"
    lead = ScriptedModel(first_calls, composed, line(("support", "yes please")), stitched)
    kit = small_kit(lead, models, guards=Guards(), support_agent="support")
    message = "how many points do I have, my app crashed, and is my refund through?"
    first = await run_turn(message, ALICE, kit)
    assert first.routing.left_out.parts == (OWED,) and first.text.endswith("Shall I?")
    second = await run_turn("yes please", ALICE, kit)
    assert agents_asked(second) == [("support", "yes please")]


SHORT = "is Dune in"
"""One word of it says something; people ask the catalogue just that."""
EVENTS = "what is on on Thursday"
LIBRARY = (
    AgentCard(
        id="catalogue",
        description="Knows the books of the library: whether one is available, how many copies there are, on which "
        "shelf it stands and who wrote it. Not for loans, fees or events.",
        model="offline",
        tools=("find_book",),
        requests=(SHORT, "on which shelf is Faust", "do you have Ulysses"),
    ),
    AgentCard(
        id="events",
        description="Knows what happens in the library: which event takes place on a weekday, when the story hour is, "
        "when the chess club meets. Not for books, loans or fees.",
        model="offline",
        tools=("find_event",),
        requests=(EVENTS, "when is the story hour", "is there a chess club"),
    ),
)


async def find_book(title: str) -> str:
    """Says whether a book is there."""
    return f"{title} is on shelf 4."


async def find_event(weekday: str) -> str:
    """Says what happens on a weekday."""
    return f"{weekday}: the chess club meets."


async def test_a_few_words_that_are_somebodys_request_get_an_agent_of_their_own():
    tools = [find_book, find_event]
    async with open_kit(OFFLINE, deck=lead_over(*LIBRARY), tools=tools) as kit:
        reply = await kit.ask(f"{SHORT}, and {EVENTS}", kit.session("library"))
    assert {outcome.agent for outcome in reply.outcomes} == {"catalogue", "events"}


async def test_a_few_words_that_are_somebodys_request_are_owed_where_nobody_who_fits_was_asked():
    models = {"catalogue": answering("It is."), "events": answering("On Thursday: chess.")}
    everything = f"{SHORT}, and {EVENTS}"
    lead = ScriptedModel(line(("events", everything)), stitched)
    kit = small_kit(lead, models, cards=[card.model_copy(update={"tools": ()}) for card in LIBRARY])
    reply = await run_turn(everything, ALICE, kit)
    assert reply.routing.left_out.parts == (SHORT,)
    assert SHORT in reply.text
