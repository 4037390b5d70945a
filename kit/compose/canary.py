"""Two versions of a card that share the sessions of a deck: who has which, and what that version is called."""

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TypeVar

from kit.compose.contract_check import Fault
from kit.compose.parts import Canary, Parts
from kit.compose.prompts import plan_prompt
from kit.core.card import AgentCard
from kit.core.context import SessionKey

P = TypeVar("P", bound=Parts)
NOBODY: frozenset[str] = frozenset()
"""The cards of which a session has the new version: none."""


def canary_of(deck: Parts, card_id: str) -> Canary:
    """What deck.yaml says of a card's new version, else the usual: 5 % of the sessions."""
    return deck.settings.canary.get(card_id, Canary())


def place_of(session: SessionKey, card_id: str) -> float:
    """Where a session stands between 0 and 1: the same in every process, and another for each card.

    It has the new version where it stands below the share, so a share that grows takes it from nobody.
    """
    # The text of a key is that of no other session.
    digest = hashlib.sha256(f"{session}\0{card_id}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def new_for(deck: Parts, session: SessionKey) -> frozenset[str]:
    """The cards of which a session has the new version."""
    # Most decks share nothing, and every turn asks.
    if not deck.next_cards:
        return NOBODY
    newer: set[str] = set()
    for card_id in deck.next_cards:
        if place_of(session, card_id) < canary_of(deck, card_id).share:
            newer.add(card_id)
    return frozenset(newer)


def is_compared(deck: Parts, session: SessionKey, card_id: str) -> bool:
    """Whether a session that has the version in place is judged as well: as many are as have the new one."""
    share = canary_of(deck, card_id).share
    return place_of(session, card_id) >= max(share, 1 - share)


def newest_of(deck: Parts, card_id: str) -> AgentCard:
    """A card in its new version, where it has one."""
    return deck.next_cards.get(card_id, deck.cards[card_id])


def gained_tools(card: AgentCard, newer: AgentCard) -> tuple[str, ...]:
    """The tools that a card's new version has and the one in place has not."""
    return tuple(tool for tool in newer.tools if tool not in card.tools)


def with_next(deck: P, card_ids: Collection[str]) -> P:
    """The deck with the new versions of these cards in place, and the flags on that the tools they gained wait for."""
    cards = dict(deck.cards)
    flags = dict(deck.flags)
    for card_id in card_ids:
        newer = deck.next_cards[card_id]
        for tool in gained_tools(cards[card_id], newer):
            grant = newer.tool_grants.get(tool)
            if grant is not None and grant.flag is not None:
                flags[grant.flag] = True
        cards[card_id] = newer
    return replace(deck, cards=cards, flags=flags)


def version_of(card_id: str, deck: Parts) -> str:
    """Names a version as its card does, with six digits that change with all that its prompt is made of."""
    card = deck.cards[card_id]
    return f"{card.version}-{plan_prompt(card, deck).cohort[:6]}"


def versions_of(deck: Parts, newer: Collection[str]) -> dict[str, str]:
    """Card -> the version that a session with these new ones has of it, for each card that shares its sessions."""
    bound = with_next(deck, newer)
    return {card_id: version_of(card_id, bound) for card_id in deck.next_cards}


def canary_faults(parts: Parts, card_id: str) -> Iterator[Fault]:
    """What keeps a new version from being compared with the one in place: where in its card, and the fix."""
    newer = parts.next_cards[card_id]
    card = parts.cards.get(card_id)
    root = parts.cards.get(parts.settings.orchestrator)
    if card is None:
        fix = "a new agent begins as a card with `status: draft`"
        yield ("id",), f"{card_id!r} has no version in place to share its sessions with; {fix}"
        return
    if newer.version == card.version:
        fix = "give the new one another"
        yield ("version",), f"both versions of {card_id!r} are called {card.version!r}; {fix}"
    if not parts.is_active(newer) or not parts.is_active(card):
        yield ("status",), f"{card_id!r} is not bound here, so nobody would have its new version"
    for version in (newer, root):
        if version is not None and version.eval is None:
            fix = "say by `eval` who judges it, and by which rubric"
            yield ("eval",), f"card {version.id!r} has no eval; {fix}"
