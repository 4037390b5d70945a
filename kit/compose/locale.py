"""The kit's fixed sentences in each language, and what its checks look for in a text; one file for
each language in locales/."""

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from pydantic import Field, ValidationError

from kit.compose.yaml_loader import UNREADABLE, load_yaml
from kit.core.errors import DeckError, field_faults
from kit.core.language.words import words
from kit.core.value import Value

PATTERNS = (
    "owning",
    "irony",
    "reserving",
    "rest",
    "neutral",
    "refusing",
    "denial",
    "undone",
    "did",
    "courtesy",
    "personal",
    "wholeness",
    "period",
    "address",
)
LOCALES = Path(__file__).with_name("locales")


class Sentences(Value):
    """What the kit says itself. Braces stand for what is put in."""

    nothing: str
    failed: str
    failed_partly: str
    nothing_on: str
    left_out: str
    for_nobody: str
    left_out_several: str
    reserved: str
    and_: str = Field(alias="and")
    or_: str = Field(alias="or")
    one_more_part: str
    more_parts: str
    more_names: str
    """Stands for the rest of a long list of names."""
    outside: str
    nobody: str
    unread: str
    askable: str
    no_question: str
    still_asked: str
    too_long: str
    unseen: str
    preamble: str
    may_i: str
    may_i_with: str
    not_kept: str
    """Says that nothing was done, as what it needs is a secret of the deck's."""
    stopped: str
    stopped_early: str
    interrupted: str
    unsourced: str
    shown: str
    """Stands for the words of an agent that showed components and said nothing."""
    plan_failed: str
    plan_failed_again: str
    plan_over: str
    plan_infeasible: str
    plan_done: str
    plan_done_one: str
    plan_again: str
    plan_made_up: str
    plan_steps: str
    plan_left: str
    plan_gone: str
    plan_part: str
    """Says of how many things a list has so many."""
    plan_each: str
    """Says what all things of a list have in common."""
    plan_empty: str
    plan_total: str
    plan_not: str
    """Says that a thing lacks a feature."""
    plan_none: str
    """Stands for a value that is not there."""
    plan_yes: str
    plan_no: str
    plan_unreachable: str
    plan_no_steps: str
    plan_ended: str
    plan_needs_key: str


class Reservations(Value):
    """What answers carry until they are said, in English, and how it is said."""

    partly: str
    without: str
    truncation: str
    some_sources: str
    unsure: str
    unchecked: str
    unjudged: str
    declined: str
    not_begun: str
    done_before: str
    asked_before: str
    half_done: str
    broken_off: str
    before_yes: str


class OwnStatuses(Value):
    """The words for the runtime's own statuses, where the deck has none."""

    thinking_it_through: str
    preparing_results: str


class Checks(Value):
    """How a text of this language owns up, reserves, refuses, is polite; patterns, and words that say nothing."""

    verb: str
    """Stands for VERB in `owning`."""
    owning: str
    irony: str
    reserving: str
    rest: str
    neutral: str
    refusing: str
    denial: str
    undone: str
    """Says of an act that it was not done: "nothing was paid"."""
    did: str
    """Says that something was done, with the verb as a group where it could be another one: "was paid"."""
    courtesy: str
    personal: str
    """Says something of the user: what they have, are or get."""
    wholeness: str
    """Says that nothing is missing: "everything was done"."""
    period: str
    """A number of days, hours and the like."""
    address: str
    """Speaks to the user."""
    numerals: dict[str, int]
    """Words for numbers."""
    conjunctions: str
    fillers: str
    idle: str
    stock: str
    """Words of owning up: a text that uses them has passed on no answer by it."""


class References(Value):
    """How a text points at what was shown, phrases with commas between them."""

    articles: str
    places: tuple[str, ...]
    """The forms of "first", those of "second", ..."""
    endings: str
    """What makes a number a place: 3rd."""
    last: str
    ones: str
    numbers: str
    """What stands before a number."""
    counted: str
    """Which of these stand before a number in words too: "number two"; "no one" is nobody."""
    soonest: str
    """What is said of the one that ends before the others."""
    things: str
    """Words for whatever was shown."""
    after: str
    """What may follow "the second" where nothing else says of what it is: "is the second valid"."""
    times: str
    """What "last" and "first" say when, not which, of."""
    least: str
    most: str
    sources: str
    pointers: str
    """What points without saying where."""
    pronouns: str
    """What leans on something said before."""


class Locale(Value):
    """One language."""

    sentences: Sentences
    reservations: Reservations
    statuses: OwnStatuses
    checks: Checks
    references: References

    def line(self, preamble: str | None) -> str:
        """Returns the line of a card that comes before any result, where it is of this language; else the fixed one."""
        # A card says its line in one language alone, mostly in English.
        if preamble and (self is ENGLISH or not _sounds_english(preamble)):
            return preamble
        return self.sentences.preamble

    def reservation(self, text: str) -> str:
        """Returns a reservation with the kit's own sentences in this language; other sentences stay as they are."""
        for name in Reservations.model_fields:
            text = text.replace(
                getattr(ENGLISH.reservations, name), getattr(self.reservations, name)
            )
        return text


def _sounds_english(text: str) -> bool:
    return not frozenset(words(text)).isdisjoint(ENGLISH.checks.fillers.split())


def load_locales(folder: Path = LOCALES) -> dict[str, Locale]:
    """Reads every file of a folder: language -> locale. Raises DeckError with every key that is missing or unknown."""
    locales: dict[str, Locale] = {}
    faults: list[str] = []
    for path in sorted(folder.glob("*.yaml")):
        try:
            locale = Locale.model_validate(load_yaml(path.read_text(encoding="utf-8")))
            # A pattern that cannot be compiled is found here, and not in the middle of a turn.
            for check in PATTERNS:
                pattern(check, [locale])
            locales[path.stem] = locale
        except ValidationError as error:
            for fault in field_faults(error.errors()):
                faults.append(f"{path.name}: {fault}")
        except (re.error, *UNREADABLE) as error:
            faults.append(f"{path.name}: {error}")
    if faults:
        raise DeckError("locales that cannot be used; give each file the keys of en.yaml:", faults)
    return locales


def pattern(check: str, locales: Iterable[Locale]) -> re.Pattern[str]:
    """Returns one pattern for a check in every language: the model chooses the language of an
    answer, not the session."""
    patterns: list[str] = []
    for locale in locales:
        words = getattr(locale.checks, check).replace("VERB", locale.checks.verb)
        patterns.append(f"(?:{words})")
    return re.compile("|".join(patterns), re.I | re.X)


BY_LANGUAGE = load_locales()
ENGLISH = BY_LANGUAGE["en"]


def language_of(tag: str) -> str:
    """Returns the language of a tag such as `es-MX`: `es`."""
    return tag.replace("_", "-").split("-")[0].lower()


@lru_cache(maxsize=64)
def locale_of(tag: str) -> Locale:
    """Returns the locale of a tag such as `es-MX`; English where no file is for its language."""
    return BY_LANGUAGE.get(language_of(tag), ENGLISH)
