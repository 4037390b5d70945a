"""A question that nobody can answer is answered with what can be asked; one that somebody can is not refused."""

import pytest

from kit.bench.case import Case, read_cases
from kit.compose.locale import ENGLISH
from kit.core.card import AgentCard
from kit.core.outcome import Answer
from kit.models.scripted import Line
from kit.patterns import PATTERNS
from kit.runtime.handle import Reply
from kit.runtime.turn import run_turn
from kit.settings import HOME
from kit.ui.shared.turn_facts import headline
from kit.ui.shared.turn_fold import advance
from kit.ui.shared.turn_view import TurnView
from kit.wire import Kit, open_kit
from tests.kits import ALICE, OFFLINE, answering, asks, small_kit, stitched

NOBODY = ENGLISH.sentences.nobody

CASES = list(read_cases(HOME / "data" / "cases" / "off_script.jsonl"))
OFF: list[Case] = [case for case in CASES if case.kind == "oos"]
ON: list[Case] = [case for case in CASES if case.kind == "single"]
HONEST = 36
UNSEEN_HONEST = 36
"""Of forty messages that are for nobody here, and of forty that the stand-in was not tuned by."""
GONE_ON_WITH = 36
"""Of forty messages that lean on the turn before, by somebody who had seen nothing of how the stand-in reads them."""
REFUSED = 2
"""Of forty messages that are for somebody here."""
HELP = ("What can you do?", "hi, how can you help me?", "¿Qué puedes hacer?", "help", "ayuda")
pytestmark = pytest.mark.req("K-10")


async def test_off_script_questions_get_no_data_and_are_not_shown_green():
    honest = 0
    async with open_kit(OFFLINE) as kit:
        for case in OFF:
            reply = await kit.ask(case.turns[0].user, kit.session(case.id))
            if not is_honest(reply):
                continue
            honest += 1
            assert "You can ask about " in reply.text
            assert reply.preamble == ENGLISH.sentences.preamble, case.id
            assert not any(char.isdigit() for char in reply.text), case.id
            view = advance(TurnView(), reply.events)
            assert headline(view).tone != "good", case.id
            assert {step.state for step in view.steps} == {"failed"}, case.id
    assert len(OFF) == 40 and honest >= HONEST


async def test_on_script_questions_are_not_refused():
    refused: list[str] = []
    async with open_kit(OFFLINE) as kit:
        for case in ON:
            reply = await kit.ask(case.turns[0].user, kit.session(case.id))
            has_answer = any(isinstance(outcome, Answer) for outcome in reply.outcomes)
            if NOBODY in reply.text or not has_answer:
                refused.append(case.turns[0].user)
    assert len(ON) == 40 and len(refused) <= REFUSED, refused


def is_honest(reply: Reply) -> bool:
    """Whether a reply says that nobody can help, and holds no data."""
    answered = any(isinstance(outcome, Answer) for outcome in reply.outcomes)
    return reply.text.startswith(NOBODY) and not answered


async def last_replies(kit: Kit, name: str) -> list[tuple[Case, Reply]]:
    """Plays the cases of a file, each in a chat of its own: the reply to its last message."""
    cases = list(read_cases(HOME / "data" / "cases" / f"{name}.jsonl"))
    assert len({case.turns[-1].user for case in cases}) == 40
    replies: list[tuple[Case, Reply]] = []
    for case in cases:
        session = kit.session(f"{name}-{case.id}")
        await kit.ask(case.turns[0].user, session)
        replies.append((case, await kit.ask(case.turns[1].user, session)))
    return replies


async def test_off_script_messages_after_a_normal_turn_are_answered_honestly():
    async with open_kit(OFFLINE) as kit:
        replies = await last_replies(kit, "off_script_unseen")
    astray = [case.turns[1].user for case, reply in replies if not is_honest(reply)]
    assert 40 - len(astray) >= UNSEEN_HONEST, astray


@pytest.mark.parametrize("name", ["follow_ups_unseen", "follow_ups_later", "follow_ups_newest"])
async def test_messages_that_lean_on_the_turn_before_go_on_with_it(name: str):
    async with open_kit(OFFLINE) as kit:
        replies = await last_replies(kit, name)
    astray = [
        case.turns[1].user
        for case, reply in replies
        if not set(reply.routing.invoked) & set(case.turns[1].expected) or NOBODY in reply.text
    ]
    assert 40 - len(astray) >= GONE_ON_WITH, astray


async def test_what_can_you_do_is_answered_from_the_cards_and_no_model_is_asked():
    async with open_kit(OFFLINE) as kit:
        topics = [card.topics for card in kit.team.orchestrator.sub_cards.values()]
        told = {message: f"You can ask about {'; '.join(topics)}." for message in HELP}
        told |= dict.fromkeys(("......", "¿?"), ENGLISH.sentences.no_question)
        for message, text in told.items():
            reply = await kit.ask(message, kit.session(message))
            assert reply.text == text
            assert reply.usage.model_calls == 0 and not reply.routing.invoked
        figures = await kit.ask("17 * 3 = ?", kit.session("figures"))
        assert figures.text.startswith(f"{NOBODY} You can ask about ")
        assert figures.preamble == ENGLISH.sentences.preamble
        other = await kit.ask("what can you do about a receipt that won't scan?", kit.session("t"))
        assert all(topics) and other.routing.invoked


@pytest.mark.parametrize("words", ["NO_ANSWER", "I'm sorry, I can only help with shopping."])
@pytest.mark.parametrize("pattern", ["mediated", "direct"])
async def test_a_default_sub_agent_that_has_nothing_ends_in_the_fixed_sentence(
    words: str, pattern: str
):
    kit = small_kit(
        [Line("I cannot say."), stitched], {"shop": answering(words)}, default_sub_agent="shop"
    )
    reply = await run_turn("what is the capital of France", ALICE, kit, PATTERNS[pattern])
    assert reply.text == f"{NOBODY} You can ask about shop."


async def test_what_somebody_has_nothing_on_is_named_in_the_users_words():
    """Who was asked may be the wrong one, and then its name says little of what goes unanswered."""
    sweets = "hunting for mints at a good price"
    calls = Line(
        calls=[
            ("ask_shop", {"query": sweets, "intent_count": 2}),
            ("ask_play", {"query": "which games are there", "intent_count": 2}),
        ]
    )
    models = {"shop": answering("NO_ANSWER"), "play": answering("Two games.")}
    kit = small_kit([calls, Line("Two games."), Line("Two games.")], models)
    reply = await run_turn(f"{sweets}, and which games are there", ALICE, kit)
    assert reply.text.endswith(f"I wasn't able to get an answer from shop to “{sweets}”.")


@pytest.mark.parametrize(
    ("deck", "message", "outside", "answered"),
    [
        (
            "consumer",
            "how many points do I have, and what is the capital of France",
            "what is the capital of France",
            "You have 4,975 points",
        ),
        (
            "consumer",
            'find coffee deals. Translate "hello" to German. What games do I play?',
            'Translate "hello" to German',
            "Castle Checkers is at win 15",
        ),
        (
            "gifts",
            "what did I redeem so far, and who is the president of France?",
            "who is the president of France",
            "The account has 5,000 points.",
        ),
    ],
)
@pytest.mark.req("PC2-S5.4c")
async def test_a_part_that_nobody_is_for_is_refused_beside_the_answer_to_the_other(
    deck: str, message: str, outside: str, answered: str
):
    async with open_kit(OFFLINE.with_(deck=HOME / "cards" / deck)) as kit:
        session = kit.session("s")
        reply = await kit.ask(message, session)
        again = await kit.ask("go on", session)
    assert answered in reply.text
    assert f"I can't help with “{outside}”." in reply.text
    assert reply.routing.left_out.for_nobody == (outside,)
    # It was not offered, so it is not taken next.
    assert "ask me again" not in reply.text and outside not in again.text


@pytest.mark.parametrize(
    ("message", "outside"),
    [
        ("what's the weather, and my points?", "what's the weather"),
        ("tell me a joke, and how many points do I have", "tell me a joke"),
        ("find sushi and tell me my points", ""),
    ],
)
async def test_one_word_that_no_card_knows_is_enough_to_say_so(message: str, outside: str):
    async with open_kit(OFFLINE) as kit:
        reply = await kit.ask(message, kit.session("s"))
    assert "You have 4,975 points" in reply.text
    assert reply.routing.left_out.for_nobody == ((outside,) if outside else ())


async def test_a_part_for_nobody_is_refused_though_the_model_says_nothing_of_it():
    message = "how many points do I have, and who is the president of France"
    rewards = AgentCard(
        id="rewards",
        model="offline",
        description="Tells a shopper the balance of points, what each gift card costs, which rewards are affordable, and past redemptions.",
        requests=("how many points do I have", "what does a gift card cost", "what did I redeem"),
    )
    composed = Line("You have 120 points. Is there anything else?")
    models = {"rewards": answering("You have 120 points.")}
    kit = small_kit([asks("rewards", query=message), composed, composed], models, cards=[rewards])
    reply = await run_turn(message, ALICE, kit)
    assert "You have 120 points." in reply.text
    assert "I can't help with “who is the president of France”." in reply.text
