"""A message that speaks of danger to life is answered with whom to call, and nobody is asked."""

import sys
from pathlib import Path
from types import FrameType

import pytest

from kit.compose.deck import load_deck
from kit.core.bodies.guard import GuardActed
from kit.core.errors import DeckError
from kit.core.language.danger import Danger, DangerFinder
from kit.patterns import MODES
from kit.runtime.handle import Reply
from kit.runtime.message import LONGEST
from kit.runtime.turn import run_turn
from kit.settings import HOME
from kit.ui.shared.turn_facts import facts
from kit.ui.shared.turn_fold import advance
from kit.ui.shared.turn_view import TurnView
from kit.wire import open_kit
from tests.kits import OFFLINE, answering, small_kit, write_files

CASES = Path(__file__).parent
DECK = load_deck(HOME / "cards" / "consumer")
LET_THROUGH_AT_MOST = 14
"""Of sixty messages about danger that were written after the deck's rules were fixed, so many got past them. Better rules
lower this; these sixty are not to be looked at for them."""
pytestmark = pytest.mark.req("K-33")


def messages(name: str) -> list[str]:
    return (CASES / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def acts(reply: Reply) -> list[GuardActed]:
    bodies = [event.body for event in reply.events]
    return [body for body in bodies if isinstance(body, GuardActed) and body.guard == "danger"]


def is_help(reply: Reply) -> bool:
    """Whether a reply only says whom to call: no agent and no model was asked."""
    numbers = ("911", "988", "1-800-222-1222")
    asked = reply.routing.invoked or reply.outcomes or reply.usage.model_calls
    return any(number in reply.text for number in numbers) and not asked


def caught(name: str) -> list[str]:
    """The messages of a file that one of the shipped deck's lists hears danger in."""
    finders = [DangerFinder(danger) for danger in DECK.dangers.values()]
    return [text for text in messages(name) if any(finder.kind_of(text) for finder in finders)]


async def test_no_message_about_danger_to_life_that_the_rules_were_written_by_gets_past_them() -> (
    None
):
    assert len(set(messages("dangerous"))) == len(caught("dangerous")) == 180
    async with open_kit(OFFLINE) as kit:
        for message in messages("dangerous")[::10]:
            reply = await kit.ask(message, kit.session(message))
            assert is_help(reply) and acts(reply), message


@pytest.mark.parametrize(
    ("name", "count", "at_most"), [("harmless", 166, 2), ("harmless_unseen", 60, 2)]
)
def test_harmless_messages_that_sound_dangerous_are_asked_as_ever(
    name: str, count: int, at_most: int
) -> None:
    assert len(set(messages(name))) == count
    assert len(caught(name)) <= at_most


def test_of_messages_that_the_rules_were_not_written_by_three_in_four_are_caught() -> None:
    assert len(set(messages("dangerous_unseen"))) == 60
    assert 60 - len(caught("dangerous_unseen")) <= LET_THROUGH_AT_MOST


@pytest.mark.parametrize("pattern", list(MODES))
async def test_no_pattern_asks_anybody_about_danger_to_life(pattern: str) -> None:
    async with open_kit(OFFLINE) as kit:
        reply = await run_turn("my kid ate a battery", kit.session("s"), kit, MODES[pattern])
    assert is_help(reply) and reply.status == "ok"
    guards = [fact for fact in facts(advance(TurnView(), reply.events)) if fact.name == "guards"]
    assert guards[0].lines == ("Heard of danger to life and said whom to call: nobody was asked",)


async def test_danger_is_heard_in_the_middle_of_a_chat_and_beside_other_matters() -> None:
    async with open_kit(OFFLINE) as kit:
        session = kit.session("s")
        await kit.ask("find coffee deals", session)
        reply = await kit.ask("How many points do I have? And I want to kill myself.", session)
        assert is_help(reply)
        assert not is_help(await kit.ask("how many points do I have", session))


async def test_help_comes_in_the_language_of_the_words_whatever_the_session_speaks() -> None:
    async with open_kit(OFFLINE) as kit:
        session = kit.session("s")
        english = await kit.ask("quiero morirme", session.replace(locale="en-US"))
        spanish = await kit.ask("I want to die", session.replace(id="t", locale="es-US"))
    assert "Línea de Prevención del Suicidio" in english.text
    assert "Suicide & Crisis Lifeline" in spanish.text


async def test_a_deck_that_names_no_locale_has_no_such_guard() -> None:
    kit = small_kit([], {"shop": answering("S")})
    assert kit.team.dangers == ()
    without = load_deck(HOME / "cards" / "manga")
    assert without.settings.danger == ()


def small_deck(folder: Path, locale: str, old: str = "", new: str = "") -> Path:
    """A deck of one card with the shipped English words for danger, one line of them changed."""
    text = (HOME / "cards" / "danger" / "en-US.yaml").read_text(encoding="utf-8")
    files = {
        "deck/deck.yaml": f"orchestrator: one\nrequired_blocks: []\ndanger: [{locale}]\n",
        "deck/one.yaml": "id: one\ndescription: Routes.\nmodel: offline\n",
        "models.yaml": "{}\n",
        "danger/en-US.yaml": text.replace(old, new) if old else text,
    }
    write_files(folder, files)
    return folder / "deck"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("- my life is over\n", "- <mine> life is over\n", "<mine> names no list of words"),
        ("- my life is over\n", "- ... my life\n", "begins or ends with a mark"),
        ("- my life is over\n", '- ""\n', "an empty phrase"),
        (
            "- asthma asthma_bad !shop ",
            "- asthma asthma_worse !shop ",
            "'asthma_worse' names no term",
        ),
        ("  rotten: rotten egg*, ", "  rotten: ro*, ", "too short for a *"),
        ("id: en-US\n", "id: en-GB\n", "give both one name"),
        ("  poison:\n    reply:", "  poison:\n    answer:", "unknown field"),
    ],
)
def test_a_fault_in_the_words_names_its_file_and_line(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    deck = small_deck(tmp_path, "en-US", old, new)
    words = deck.parent / "danger" / "en-US.yaml"
    changed = words.read_text(encoding="utf-8")
    line = changed[: changed.index(new) + len(new.rstrip())].count("\n") + 1
    with pytest.raises(DeckError) as error:
        load_deck(deck)
    fault = next(fault for fault in error.value.faults if sentence in fault)
    assert fault.startswith(f"{words}:{line}: ")


def test_a_locale_that_has_no_file_is_a_fault_of_deck_yaml(tmp_path: Path) -> None:
    deck = small_deck(tmp_path, "en-UK")
    with pytest.raises(DeckError, match=r"deck\.yaml:\d+: unknown locale of danger 'en-UK'"):
        load_deck(deck)


FINDER = DangerFinder(
    Danger.model_validate(
        {
            "id": "en-US",
            "words": {"small": "a the half of", "baby": "baby", "child": "<baby> kid"},
            "terms": {
                "swallowed": "drank, swallowed, put ... in ~ mouth",
                "toxic": "bleach, drain cleaner",
                "shop": "coupon*",
            },
            "clause_openers": "and i, then",
            "harmless": ["kill* time"],
            "kinds": {
                "self_harm": {"reply": "Call 988.", "phrases": ["kill* myself"]},
                "poison": {
                    "reply": "Call.",
                    "phrases": ["<child> ... ate ~ soap"],
                    "rules": ["swallowed toxic !shop"],
                },
            },
        }
    )
)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("KILLING MYSELF", "self_harm"),
        ("kill for myself", None),
        ("overkill myself", None),
        ("kill time by myself", None),
        ("The baby, I think, ate half of the soap", None),
        ("The báby, of course, isn't well: the baby just now ate half of the soap", "poison"),
        ("the baby ate the cat's soap", None),
        ("a soap the baby ate", None),
        ("My kid sleeps. I ate soap", None),
        ("my kid ate the soap and I am killing myself", "self_harm"),
        ("bleach is what the two of them drank", "poison"),
        ("she put the drain cleaner in a mouth", "poison"),
        ("he drank. It was bleach", "poison"),
        ("drain the pool cleaner that he drank", None),
        ("coupons for the bleach that he drank", None),
        ("he drank bleach. Where are my coupons", "poison"),
        ("which coupons are mine, and he drank bleach", "poison"),
        ("which coupons are mine and I drank bleach", "poison"),
        ("he drank bleach then show coupons", "poison"),
        ("he drank bleach and coupons", None),
        ("coupons for drain cleaner and I drank coffee and bleach", "poison"),
        ("drank coupons and I want bleach", None),
        (
            "my brother drank a great lot of cold water while the two of us washed it with bleach",
            None,
        ),
        ("he swalowed bleach", "poison"),
        ("he swallwoed bleach", "poison"),
        ("he swallowedd bleach", "poison"),
        ("he wallowed in bleach", None),
        (f"{'x' * 100} he drank bleach", "poison"),
    ],
)
def test_phrases_hold_their_words_together(message: str, kind: str | None) -> None:
    assert FINDER.kind_of(message) == kind


def calls(finder: DangerFinder, text: str) -> int:
    """How many functions are called while a text is read: the work, whatever else the machine does."""
    count = 0

    def on_event(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    sys.setprofile(on_event)
    try:
        finder.kind_of(text)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.req("S-1")
@pytest.mark.parametrize("repeated", ["my kid ate ", "bleach and ", "x"])
def test_twice_the_message_takes_twice_the_work(repeated: str) -> None:
    for danger in DECK.dangers.values():
        finder = DangerFinder(danger)
        text = (repeated * LONGEST)[: LONGEST // 8]
        assert calls(finder, text) < 2.1 * calls(finder, text[: LONGEST // 16])
