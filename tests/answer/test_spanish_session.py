"""In a Spanish session every sentence that the kit words itself is Spanish, those of the stand-in too."""

import re
from pathlib import Path

import pytest

from kit.compose.locale import ENGLISH, Reservations, Sentences, locale_of
from kit.compose.parts import Guards
from kit.core.bodies.speech import Text
from kit.core.card import AgentCard
from kit.core.context import Principal, Session
from kit.core.language.small_talk import small_talk
from kit.models.offline import phrases
from kit.models.scripted import Line
from kit.runtime.act_ledger import DECLINED, DONE_BEFORE, UNCERTAIN
from kit.runtime.call_tool import question_of
from kit.runtime.turn import Reply, run_turn
from kit.settings import Settings
from kit.tools.tool import ToolLimits
from kit.wire import open_kit
from tests.kits import answering, asks, bodies, small_kit
from tests.plan_kits import plan_kit

SPANISH = locale_of("es")
ENGLISH_WORDS = re.compile(
    r"\b(?:the|wasn't|able|answer|about|right now|let me|you|your|I'm|moment|left out|one reservation"
    r"|more parts?|available|incomplete|may|hello|welcome|glad|sorry|me check)\b",
    re.I,
)
"""Words of the kit's English sentences."""


def in_spanish(session_id: str) -> Session:
    return Session(
        id=session_id, principal=Principal(tenant_id="acme", user_id="u-001"), locale="es-MX"
    )


def lead(preamble: str | None) -> AgentCard:
    return AgentCard(
        id="orchestrator",
        role="orchestrator",
        description="Routes.",
        model="offline",
        sub_agents=("shop",),
        preamble=preamble,
    )


def shown(reply: Reply) -> str:
    texts = [body.text for body in bodies(reply, Text)]
    return "\n".join([*texts, reply.preamble, reply.text])


@pytest.mark.req("PC2-L")
def test_every_sentence_is_there_in_both_languages_and_none_is_the_same():
    for fields, spanish, english in (
        (Sentences, SPANISH.sentences, ENGLISH.sentences),
        (Reservations, SPANISH.reservations, ENGLISH.reservations),
    ):
        for name in fields.model_fields:
            words = getattr(spanish, name)
            # "no" is the one word that both languages have
            assert words == "no" or words != getattr(english, name), name
            assert not ENGLISH_WORDS.search(words), words
    for name in phrases.Phrases.__slots__:
        words = getattr(phrases.SPANISH, name)
        assert words != getattr(phrases.ENGLISH, name) and not ENGLISH_WORDS.search(words)


@pytest.mark.req("PC2-L")
@pytest.mark.parametrize(
    "message",
    [
        "mis puntos y ofertas de café",
        "buenos días",
        "vale, perfecto",
        "no sé qué es un planeta",
        "¿qué puedes hacer?",
    ],
)
async def test_a_spanish_session_of_the_shipped_deck_is_worded_in_spanish(message: str):
    """Every agent fails, so that what is read is the kit's own. What can be asked is in the words of the cards."""
    settings = Settings(store=":memory:", pace=0.0, today="2026-11-01")
    async with open_kit(settings, faults=True) as kit:
        faults = [f"{card}=raise" for card in kit.deck.cards if card != "orchestrator"]
        reply = await kit.ask(message, in_spanish("s"), faults=faults)
    cards = "; ".join(card.topics or card.id for card in kit.deck.cards.values())
    own = "\n".join(
        line
        for line in shown(reply).splitlines()
        if "preguntar sobre" not in line and line not in cards
    )
    assert own.strip() or "preguntar sobre" in reply.text
    assert not ENGLISH_WORDS.search(own), own


@pytest.mark.req("PC2-L")
@pytest.mark.parametrize(
    "message",
    [
        "muchas gracias por todo",
        "¿Qué tal?",
        "no, gracias",
    ],
)
def test_spanish_pleasantries_ask_for_nothing(message: str):
    assert small_talk(message)


@pytest.mark.parametrize(
    "message",
    [
        "why not?",
        "hola, ¿cuántos puntos tengo?",
        "again, please",
        "gracias por los puntos",
    ],
)
def test_what_asks_for_something_is_no_small_talk(message: str):
    assert not small_talk(message)


def test_a_bare_why_not_is_still_a_yes():
    assert small_talk("why not") and not small_talk("why not", "Shall I look for more?")


@pytest.mark.req("PC2-L")
@pytest.mark.parametrize(
    ("preamble", "spoken"),
    [
        ("One moment, I'm looking through the library.", SPANISH.sentences.preamble),
        ("Un momento, miro en la biblioteca.", "Un momento, miro en la biblioteca."),
        (None, SPANISH.sentences.preamble),
    ],
)
async def test_a_cards_preamble_is_said_where_it_is_of_the_language(
    preamble: str | None, spoken: str
):
    kit = small_kit(
        [asks("shop", text=""), Line("Hay 3.")],
        {"shop": answering("Hay 3.")},
        cards=[lead(preamble)],
    )
    assert (await run_turn("ofertas", in_spanish("p"), kit)).preamble == spoken


@pytest.mark.req("PC2-L")
async def test_a_plan_begins_in_the_language(tmp_path: Path):
    kit = plan_kit(tmp_path)
    reply = await run_turn("Which outlets are active in Leeds?", in_spanish("p"), kit)
    kit.store.close()
    assert reply.preamble == SPANISH.sentences.preamble


@pytest.mark.req("PC2-L")
async def test_a_request_that_the_model_answers_itself_is_sent_on_in_the_language():
    kit = small_kit(
        [Line("¡Claro que sí!"), Line("Hay 3.")],
        {"shop": answering("Hay 3.")},
        cards=[lead("One moment, I'm looking through the library.")],
        guards=Guards(),
        default_sub_agent="shop",
    )
    reply = await run_turn("ofertas de café", in_spanish("p"), kit)
    assert reply.routing.invoked == ("shop",)
    assert reply.preamble == SPANISH.sentences.preamble


@pytest.mark.req("PC2-L")
def test_the_words_about_acts_are_known_to_the_languages():
    assert ENGLISH.reservation(DECLINED) == DECLINED == ENGLISH.reservations.declined
    assert SPANISH.reservation(DECLINED) == SPANISH.reservations.declined
    assert SPANISH.reservation(UNCERTAIN) == SPANISH.reservations.broken_off
    assert SPANISH.reservation(DONE_BEFORE) == SPANISH.reservations.done_before
    question = question_of(ToolLimits(confirm=True), "send mail", {"to": "Ana"}, SPANISH.sentences)
    assert question == "¿Puedo ejecutar send mail con to: Ana?"


@pytest.mark.req("PC2-L")
async def test_the_model_that_composes_reads_a_reservation_in_the_language():
    from kit.core.outcome import PARTLY, Answer, tell

    answer = Answer(call_id="c", agent="shop", text="Hay 3.", data_faults=("timeout",))
    assert SPANISH.reservations.partly in tell(answer, reword=SPANISH.reservation)
    assert PARTLY in tell(answer)
