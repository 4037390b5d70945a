"""The stand-in reads English, and says so where it is asked in another language."""

import pytest

from kit.bench.case import read_cases
from kit.core.context import Principal, Session
from kit.core.language.tongue import tongue_of
from kit.settings import HOME, Settings
from kit.wire import open_kit

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


def test_no_english_message_of_our_own_cases_is_taken_for_another_language():
    """Of two cases the message is Spanish, with the marks of a Spanish question."""
    strange: list[str] = []
    for path in sorted((HOME / "data" / "cases").glob("*.jsonl")):
        for case in read_cases(path):
            strange += [turn.user for turn in case.turns if tongue_of(turn.user)]
    assert len(strange) == 2 and all(message.startswith("¿") for message in strange)


@pytest.mark.parametrize("message", [message for message, _ in STRANGE])
async def test_the_stand_in_says_that_it_reads_english_and_asks_nobody(message: str):
    settings = Settings(store=":memory:", pace=0.0, today="2026-11-01", model="offline")
    async with open_kit(settings) as kit:
        reply = await kit.ask(message, kit.session("s"))
        assert "I can read English alone" in reply.text
        assert reply.status == "failed" and reply.routing.invoked == ()


async def test_a_spanish_session_is_told_in_spanish_that_english_alone_is_read():
    settings = Settings(store=":memory:", pace=0.0, today="2026-11-01", model="offline")
    who = Principal(tenant_id="acme", user_id="u-001")
    async with open_kit(settings) as kit:
        session = Session(id="s", principal=who, locale="es-MX")
        for number, message in enumerate(["¿Cuántos puntos tengo?", "Combien de points ai-je ?"]):
            reply = await kit.ask(message, session.replace(id=str(number)))
            assert "Solo entiendo bien el inglés" in reply.text
            assert reply.status == "failed" and reply.routing.invoked == ()
