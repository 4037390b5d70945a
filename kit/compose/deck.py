"""A deck: cards, blocks, models and settings that are known to fit together."""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kit.compose.advice import advise
from kit.compose.canary import canary_faults, with_next
from kit.compose.check import Check
from kit.compose.deck_code import load_deck_code
from kit.compose.parts import Block, DeckSettings, Parts
from kit.compose.read import read_deck, runs_of
from kit.compose.registry import Registry, by_id
from kit.compose.topology import Rubric
from kit.compose.yaml_source import Faults
from kit.core.card import AgentCard
from kit.core.display.command import command
from kit.core.display.count import many
from kit.core.display.html import folded, notebook_html, table, text
from kit.core.errors import DeckError
from kit.core.language.danger import Danger
from kit.core.model import OFFLINE, ModelSpec
from kit.tools.deck_tools import given_tools, load_deck_tools

log = logging.getLogger("kit.deck")
__all__ = ["Block", "Deck", "DeckSettings", "load_deck"]


@dataclass(frozen=True, kw_only=True)
class Deck(Parts):
    """Parts that passed every check. Immutable; `bind()` makes a team of it."""

    warnings: tuple[str, ...] = field(default=(), compare=False)

    def _repr_html_(self) -> str:
        """Shows the cards in a notebook, and the warnings on a click."""
        rows: list[tuple[str, ...]] = []
        for card in self.cards.values():
            tools = ", ".join(card.tools)
            rows.append((card.id, card.description, card.run or card.model, tools, card.status))
        cards = many(len(rows), "card")
        warnings = many(len(self.warnings), "warning")
        head = text(f"{self.name} · {cards} · cap {self.settings.cap} · {warnings}")
        parts = [head, table(("card", "description", "model", "tools", "status"), rows)]
        if self.warnings:
            parts.append(folded("warnings", text("\n".join(self.warnings))))
        return notebook_html(*parts)

    @classmethod
    def of(
        cls,
        cards: Iterable[AgentCard],
        blocks: Iterable[Block] = (),
        settings: DeckSettings | None = None,
        models: Iterable[ModelSpec] = (),
        *,
        required_blocks: Sequence[str] | None = None,
        name: str = "deck",
        tools: object = None,
        known: Collection[str] | None = None,
        flags: Mapping[str, bool] = {},
        tool_settings: Mapping[str, Mapping[str, Any]] = {},
        flag_settings: Mapping[str, Mapping[str, Mapping[str, Any]]] = {},
        tool_flags: Mapping[str, str] = {},
        rubrics: Iterable[Rubric] = (),
        dangers: Iterable[Danger] = (),
        next_cards: Iterable[AgentCard] = (),
    ) -> "Deck":
        """A deck from values, under the same checks as a loaded one and without any file.

        With no settings the one card that has sub_agents orchestrates, else the first card.
        `required_blocks` are the ids of the platform blocks that every prompt begins with, in place
        of those of the settings; a deck that has none says so by `required_blocks=()`. `tools`:
        functions, LangChain tools and tool factories, in a sequence or a mapping, or the tools of
        another deck; None takes what `settings.tools` names. `known`: ids of further tools, which
        `open_kit` is going to be given; with neither, tools are left unchecked. `next_cards`: new
        versions of cards, which share the sessions with them. Raises DeckError with every fault,
        CodeError for tools that cannot be used.
        """
        cards = tuple(cards)
        blocks = tuple(blocks)
        if settings is None:
            settings = DeckSettings(orchestrator=_root(cards))
        if required_blocks is not None:
            settings = settings.model_copy(update={"required_blocks": tuple(required_blocks)})
        if tools is None:
            deck_tools = load_deck_tools(settings.tools, Path(), servers=settings.mcp)
        else:
            deck_tools = given_tools(tools)
        specs = {spec.key: spec for spec in (OFFLINE, *models)}
        newer = by_id("next card", next_cards)
        runs = runs_of(by_id("card", cards), newer)
        parts = Parts(
            name=name,
            settings=settings,
            cards=by_id("card", cards),
            blocks=by_id("block", blocks),
            models=Registry("model", specs),
            flags=flags,
            tool_settings=tool_settings,
            flag_settings=flag_settings,
            tool_flags=tool_flags,
            rubrics=by_id("rubric", rubrics),
            dangers=by_id("danger", dangers),
            tools=deck_tools,
            # Of a deck that was read from files the code lies where its tools do.
            code=load_deck_code({**settings.code, "agents": tuple(runs)}, deck_tools.folder),
            next_cards=newer,
        )
        # Values have no lines, so a fault names the part alone.
        check = Check(parts, lambda noun, name, path: f"{noun} {name!r}", _tool_ids(parts, known))
        for noun, items in (("card", cards), ("block", blocks)):
            for part_id, count in Counter([item.id for item in items]).items():
                if count > 1:
                    sentence = f"{noun} id {part_id!r} is given twice; choose another"
                    check.faults.add(f"{noun} {part_id!r}", sentence)
        return _deck_of(check, f"deck {name!r} cannot be used:")


def load_deck(
    path: str | Path,
    known: Collection[str] | None = None,
    environment: str = "default",
    flags: Mapping[str, bool] = {},
) -> Deck:
    """Reads and checks a deck's folder.

    `path` holds deck.yaml and one YAML file a card; blocks/, models.yaml and settings/ lie beside
    it. The code that deck.yaml names under `tools:` is imported. `known`: ids of further tools,
    which `open_kit` is going to be given; without any, tools are left unchecked. `environment`
    names a file of settings/, laid over default.yaml; `flags` go before both.

    Raises DeckError: all faults in one report, each `file:line: sentence with the fix`. Warnings
    are in `deck.warnings`.
    """
    folder = Path(path)
    if not folder.is_dir():
        fault = f"{folder} is not a folder; give the folder that holds deck.yaml"
        raise DeckError(f"no deck at {folder}:", [fault])
    parts, draft = read_deck(folder, environment, flags)
    check = Check(parts, draft.where, _tool_ids(parts, known), draft.unreadable, draft.faults)
    return _deck_of(check, f"deck {parts.name!r} cannot be used:")


def open_deck(
    path: str | Path, known: Collection[str] | None = None, environment: str = "default"
) -> Deck:
    """Loads a deck for a Kit: as `load_deck`, and how many warnings it has goes to the log `kit.deck`."""
    deck = load_deck(path, known, environment)
    if deck.warnings:
        count = many(len(deck.warnings), "warning")
        log.warning("the deck has %s; to read: %s", count, command("check", path))
    return deck


def _tool_ids(parts: Parts, known: Collection[str] | None) -> Collection[str] | None:
    tools = parts.tools
    # Without any tools in sight, those of the cards are given later, and nobody knows their ids.
    if known is None and not (tools.ids or tools.references or tools.servers):
        return None
    return tools.ids.union(known or ())


def _deck_of(check: Check, title: str) -> Deck:
    check.run()
    for card_id in check.parts.next_cards:
        _check_next(check, card_id)
    if check.faults:
        raise DeckError(title, check.faults.in_order())
    return Deck(**vars(check.parts), warnings=tuple(advise(check.parts, check.where).in_order()))


def _check_next(check: Check, card_id: str) -> None:
    """Checks the deck as it is with a card's new version in place; adds what is wrong only then."""
    parts = check.parts

    def where(noun: str, name: str, path: tuple[str | int, ...] = ()) -> str:
        if noun == "card" and name == card_id:
            noun = "next card"
        return check.where(noun, name, path)

    faults = Faults()
    for path, sentence in canary_faults(parts, card_id):
        faults.add(where("card", card_id, path), sentence)
    if card_id in parts.cards:
        variant = with_next(parts, [card_id])
        Check(variant, where, check.tools, check.unreadable, faults).run()
    for fault in faults:
        if fault not in check.faults:
            check.faults.append(fault)


def _root(cards: tuple[AgentCard, ...]) -> str:
    for card in cards:
        if card.sub_agents:
            return card.id
    if cards:
        return cards[0].id
    return ""
