"""The stand-in reads English, and says so where it is asked in another language."""

import pytest

from kit.bench.case import read_cases
from kit.core.language.tongue import tongue_of
from kit.settings import HOME
from kit.wire import open_kit
from tests.kits import OFFLINE

STRANGE = [
    ("¿Cuántos puntos tengo y qué ofertas de café hay?", "es"),
    ("quiero hablar con una persona", "es"),
    ("Combien de points ai-je ?", "fr"),
    ("je cherche des offres de café", "fr"),
    ("Wie viele Punkte habe ich?", "de"),
    ("welche Angebote gibt es für Kaffee", "de"),
    ("quantos pontos tenho", "pt"),
    ("quanti punti ho", "it"),
    ("コーヒーの割引はありますか", "other"),
    ("كم نقطة لدي", "other"),
]


@pytest.mark.parametrize(("message", "tongue"), STRANGE)
def test_the_language_of_a_message_is_known_by_its_little_words_and_its_script(
    message: str, tongue: str
):
    assert tongue_of(message) == tongue


@pytest.mark.parametrize(
    "message",
    ["deals at Casa de la Pizza", "el pollo loco near me", "café au lait deals", "okay 👍", "1, 2"],
)
def test_names_and_dishes_of_another_language_are_english_all_the_same(message: str):
    assert tongue_of(message) is None


def test_one_little_word_is_enough_in_a_session_of_that_language():
    assert tongue_of("la segunda", "es") == "es" and tongue_of("la segunda") is None
    assert tongue_of("find coffee deals", "es") is None


def test_no_english_message_of_our_own_cases_is_taken_for_another_language():
    """Of two cases the message is Spanish, with the marks of a Spanish question."""
    strange: list[str] = []
    for path in sorted((HOME / "data" / "cases").glob("*.jsonl")):
        for case in read_cases(path):
            strange += [turn.user for turn in case.turns if tongue_of(turn.user)]
    assert len(strange) == 2 and all(message.startswith("¿") for message in strange)


async def test_the_stand_in_says_that_it_reads_english_and_asks_nobody():
    told = {"en-US": "I can read English alone", "es-MX": "Solo entiendo bien el inglés"}
    async with open_kit(OFFLINE) as kit:
        for number, (message, _) in enumerate(STRANGE):
            for locale, words in told.items():
                session = kit.session(f"{locale}-{number}").replace(locale=locale)
                reply = await kit.ask(message, session)
                assert words in reply.text, message
                assert reply.status == "failed" and reply.routing.invoked == ()
