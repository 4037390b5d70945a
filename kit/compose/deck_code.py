"""The patterns, guards and pages that a deck brings, and the agents that its cards run: all named as its tools are."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kit.bridges.part import Bridge
from kit.bridges.recognise import load_bridge
from kit.core.errors import CodeError
from kit.tools.loading import load_each, named_items

Where = Callable[[str, int], str]
"""Words the place of a reference in deck.yaml: its section, and its number there, from 0."""
Report = Callable[[str, str], None]
"""Gets the place of a fault and its words."""


@dataclass(frozen=True)
class DeckCode:
    """A deck's own patterns, guards and pages by name, and what its cards run."""

    patterns: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Each is a Pattern, or an async function (call, ctx) -> Outcome. Which names the kit has given
    away is known to kit/patterns, which is above this layer (`modes_of`)."""
    guards: Mapping[str, Callable[..., Any]] = field(default_factory=dict[str, Callable[..., Any]])
    """Functions (decision, call, ctx) -> Decision, in the order in which they are applied."""
    pages: Mapping[str, Callable[[], None]] = field(default_factory=dict[str, Callable[[], None]])
    agents: Mapping[str, Bridge] = field(default_factory=dict[str, Bridge])
    """What a card says under `run:` -> the system that it is."""
    places: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    """Pattern -> the place of its reference."""
    references: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Section -> the references of deck.yaml that led to them."""
    folder: Path = field(default=Path(), compare=False)
    """The deck's folder."""

    def __reduce__(self) -> tuple[Callable[..., "DeckCode"], tuple[Any, ...]]:
        # A function of a deck's file has no importable name, so another process loads it again.
        return load_deck_code, (self.references, self.folder)


def _named_section(section: str, _: int) -> str:
    return f"`{section}:` of the deck"


def load_deck_code(
    references: Mapping[str, Sequence[str]],
    folder: Path,
    where: Where = _named_section,
    report: Report | None = None,
) -> DeckCode:
    """Imports the patterns, guards, pages and agents that a deck names. Without `report` the first
    fault raises CodeError."""

    def complain(section: str, number: int, sentence: str) -> None:
        if report is None:
            raise CodeError(f"{where(section, number)}: {sentence}")
        report(where(section, number), sentence)

    code: dict[str, dict[str, Any]] = {"agents": {}}
    places: dict[str, str] = {}
    for section, texts in references.items():
        if section == "agents":
            for number, reference in enumerate(texts):
                try:
                    code["agents"][reference] = load_bridge(reference, folder)
                except CodeError as error:
                    complain(section, number, str(error))
            continue
        noun = section.removesuffix("s")
        read = partial(_read, section)
        code[section], sources = load_each(texts, folder, noun, read, partial(complain, section))
        if section == "patterns":
            for name, reference in sources.items():
                places[name] = where(section, texts.index(reference))
    kept = {section: tuple(texts) for section, texts in references.items()}
    return DeckCode(**code, places=places, references=kept, folder=folder)


def _read(section: str, value: object, reference: str) -> dict[str, Any]:
    if section == "pages" and not inspect.isroutine(value):
        # The app lists its pages before it imports any, by the names that their references end with.
        raise CodeError(f"{reference} is no function; name each page by a reference of its own")
    items = named_items(value, reference)
    for name, item in items.items():
        if fault := _FAULTS[section](item):
            raise CodeError(f"{name!r} of {reference} {fault}")
    return items


def _pattern_fault(item: Any) -> str:
    # Pattern itself lies above this layer, so it is known by what it has.
    run = item if inspect.iscoroutinefunction(item) else getattr(item, "run", None)
    if run is None:
        return "is no pattern; give an async function (call, ctx) or a Pattern"
    return _parameters_fault(run, "call", "ctx")


def _guard_fault(item: Any) -> str:
    if not inspect.isroutine(item):
        return "is no guard; give a function (decision, call, ctx) that returns the decision"
    return _parameters_fault(item, "decision", "call", "ctx")


def _page_fault(item: Any) -> str:
    if inspect.iscoroutinefunction(item):
        return "is async, and Streamlit draws pages without a loop; write `def`"
    return _parameters_fault(item)


def _parameters_fault(function: Callable[..., Any], *names: str) -> str:
    try:
        inspect.signature(function).bind(*names)
    except TypeError:
        return f"cannot be called as ({', '.join(names)}); give it these parameters alone"
    return ""


_FAULTS: Mapping[str, Callable[[Any], str]] = {
    "patterns": _pattern_fault,
    "guards": _guard_fault,
    "pages": _page_fault,
}
"""Section of deck.yaml -> what is wrong with an item of it; empty where nothing is."""
