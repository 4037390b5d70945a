"""The fixed sentences follow the session's language, and what a text of that language says is understood."""

from pathlib import Path

import pytest

from kit.compose.locale import BY_LANGUAGE, ENGLISH, LOCALES, load_locales, locale_of
from kit.core.context import Principal, Session
from kit.core.errors import DeckError
from kit.core.outcome import BEFORE_YES, CUT, PARTLY, WITHOUT
from kit.models.scripted import Line, ScriptedModel
from kit.patterns.topology import UNCHECKED, UNJUDGED, UNSURE
from kit.runtime.act_ledger import (
    ASKED_BEFORE,
    DECLINED,
    DONE_BEFORE,
    HALF_DONE,
    NOT_BEGUN,
    UNCERTAIN,
)
from kit.runtime.answer.clauses import (
    Part,
    admits,
    clauses,
    only_owns_up,
    only_refuses,
)
from kit.runtime.message import LONGEST
from kit.runtime.turn import Reply, run_turn
from kit.settings import Settings
from kit.tools.enricher import CAVEAT
from kit.wire import open_kit
from tests.kits import asks, failing, small_kit

REWARDS = Part("rewards", "rewards", frozenset({"punto"}))
SPANISH = BY_LANGUAGE["es"]


def in_spanish(session_id: str = "s", locale: str = "es-MX") -> Session:
    return Session(id=session_id, principal=Principal(tenant_id="t", user_id="u"), locale=locale)


async def answer(composed: str, locale: str = "es-MX") -> Reply:
    """A turn with two sub-agents of which rewards fails, and what its model makes of it."""
    queries = {"shop": "ofertas de café", "rewards": "mis puntos"}
    calls = [
        (f"ask_{agent}", {"query": query, "intent_count": 2}) for agent, query in queries.items()
    ]
    lead = [Line(calls=calls), Line(composed), Line(composed)]
    kit = small_kit(
        lead, {"shop": ScriptedModel(Line("Hay 3 ofertas de café.")), "rewards": failing(OSError())}
    )
    return await run_turn("ofertas de café y mis puntos", in_spanish(locale=locale), kit)


@pytest.mark.req("PC2-L")
async def test_a_failed_part_is_apologised_for_in_the_language_of_the_session():
    for locale, sentences in (
        ("es-MX", SPANISH.sentences),
        ("en-GB", ENGLISH.sentences),
        ("fi-FI", ENGLISH.sentences),
    ):
        reply = await answer("Hay 3 ofertas de café.", locale)
        assert reply.text == f"Hay 3 ofertas de café.\n\n{sentences.failed.format(parts='rewards')}"
        assert reply.preamble == sentences.preamble


@pytest.mark.req("PC2-L")
async def test_a_model_that_owns_up_in_spanish_is_not_corrected():
    text = "Hay 3 ofertas de café. No he podido consultar tus puntos ahora mismo."
    assert (await answer(text)).text == text


@pytest.mark.req("PC2-L")
async def test_parts_over_the_cap_and_turns_without_a_model_speak_the_language():
    lead = [asks("shop", "rewards"), Line("Hay 3 ofertas de café."), Line("Hay 3 ofertas de café.")]
    kit = small_kit(
        lead,
        {name: ScriptedModel(Line("Hay 3 ofertas de café.")) for name in ("shop", "rewards")},
        cap=1,
    )
    reply = await run_turn("ofertas de café y mis puntos", in_spanish(), kit)
    assert SPANISH.sentences.left_out.format(parts="rewards") in reply.text
    long = await run_turn("x" * (LONGEST + 1), in_spanish("b"), kit)
    assert long.text.startswith("Ese mensaje es demasiado largo")


@pytest.mark.req("PC2-L")
async def test_the_kits_own_status_is_worded_in_the_language():
    kit = small_kit(
        [asks("shop"), Line("Hecho.")], {"shop": ScriptedModel(Line("Hecho.", delay=3.0))}
    )
    reply = await run_turn("ofertas", in_spanish(), kit)
    assert [event.body.text for event in reply.events if event.body.kind == "status_line"] == [
        SPANISH.statuses.thinking_it_through
    ]


@pytest.mark.req("PC2-L")
async def test_the_deck_the_settings_or_the_session_say_which():
    async with open_kit(Settings(store=":memory:", model="offline")) as kit:
        assert kit.session("s").locale == kit.deck.settings.visitor.locale == "en-US"
    async with open_kit(
        Settings.read({"KIT_LOCALE": "es-ES", "KIT_STORE": ":memory:", "KIT_MODEL": "offline"})
    ) as kit:
        assert kit.session("s").locale == "es-ES"
        assert (await kit.ask("", kit.session("s"))).text == SPANISH.sentences.no_question


@pytest.mark.req("PC2-L")
def test_a_language_is_one_file_and_a_missing_key_is_a_fault_that_names_it(tmp_path: Path):
    for path in LOCALES.glob("*.yaml"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    spanish = (LOCALES / "es.yaml").read_text(encoding="utf-8")
    (tmp_path / "fr.yaml").write_text(spanish.replace("Un momento", "Un instant"), encoding="utf-8")
    assert load_locales(tmp_path)["fr"].sentences.preamble.startswith("Un instant")
    for key in ("failed", "unsure", "thinking_it_through", "owning"):
        (tmp_path / "fr.yaml").write_text(
            spanish.replace(f"  {key}:", "  other:", 1), encoding="utf-8"
        )
        with pytest.raises(DeckError, match=rf"fr\.yaml: \w+\.{key}: Field required"):
            load_locales(tmp_path)
    (tmp_path / "fr.yaml").write_text(
        spanish.replace("owning: |-\n", "owning: |-\n    (\n", 1), encoding="utf-8"
    )
    with pytest.raises(DeckError, match=r"fr\.yaml: missing \)"):
        load_locales(tmp_path)


def test_reservations_are_said_in_the_language_and_known_by_their_english():
    told = {
        PARTLY,
        WITHOUT,
        CUT,
        CAVEAT,
        UNSURE,
        UNCHECKED,
        UNJUDGED,
        DECLINED,
        UNCERTAIN,
        HALF_DONE,
        NOT_BEGUN,
        DONE_BEFORE,
        ASKED_BEFORE,
        BEFORE_YES,
    }
    assert told == set(ENGLISH.reservations.model_dump().values())
    assert (
        locale_of("es_AR").reservation(f"{CAVEAT} Prices of today.")
        == f"{SPANISH.reservations.some_sources} Prices of today."
    )
    assert ENGLISH.reservation(PARTLY) == PARTLY


@pytest.mark.parametrize("locale", BY_LANGUAGE.values(), ids=BY_LANGUAGE)
def test_the_fixed_sentences_of_a_language_own_up_by_its_own_checks(locale: object):
    assert isinstance(locale, type(ENGLISH))
    words = locale.sentences
    for line in (words.failed, words.failed_partly, words.nothing_on, words.left_out):
        line = line.format(part="rewards", requests="“what are my points”", parts="rewards")
        assert admits(clauses(line), REWARDS), line
    assert only_owns_up(words.failed.format(parts="rewards")) and only_refuses(words.outside)


@pytest.mark.req("PC2-L")
@pytest.mark.parametrize(
    ("text", "owns"),
    [
        ("No pude consultar tus puntos.", True),
        ("Tus puntos no se han podido consultar.", True),
        ("No puedo decirte tus puntos ahora.", True),
        ("No consigo ver tus puntos.", True),
        ("No dispongo de tus puntos ahora mismo.", True),
        ("Me ha sido imposible consultar tus puntos.", True),
        ("Hubo un error al consultar tus puntos.", True),
        ("No sé cuántos puntos tienes.", True),
        ("La consulta de puntos falló.", True),
        ("No hay problema, aquí tienes tus puntos.", False),
        ("Tienes 120 puntos y no caducan.", False),
        ("Sin coste adicional por tus puntos.", False),
        ("No tienes que hacer nada con tus puntos.", False),
        ("No fue necesario cambiar tus puntos.", False),
    ],
)
def test_how_people_own_up_in_spanish_is_understood_and_nothing_else_is(text: str, owns: bool):
    assert admits(clauses(text), REWARDS) == owns
