"""What an answer left out and offered to take next is taken next, when the user says so."""

import pytest

from kit.compose.parts import Guards
from kit.models.scripted import Line, Script, ScriptedModel
from kit.runtime.turn import run_turn
from tests.kits import ALICE, SmallKit, agents_asked, answering, small_kit, stitched

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
