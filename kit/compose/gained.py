"""Which agent gained which tool between two revisions of the cards, and whether the gain is gated."""

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from kit.compose.read import NEXT
from kit.compose.revision import RevisionError, checkout, committed_on
from kit.compose.yaml_loader import UNREADABLE, load_yaml
from kit.core.card import ToolGrant
from kit.core.display.count import many
from kit.core.schema.json_value import is_object

GATED_DAYS = 14
"""How long a new tool stays behind a flag that is off by default."""


@dataclass(frozen=True, slots=True)
class Gain:
    """A tool that an agent has now and had not before."""

    agent: str
    tool: str
    grant: ToolGrant | None
    fault: str | None
    """Why the gain is not gated; None when it is."""
    newcomer: bool = False
    """The agent is new itself: promotion is its gate, not a grant for each tool."""

    def line(self) -> str:
        """It in words, fit for a terminal."""
        since = "with a new agent" if self.newcomer else "undated"
        if self.grant:
            since = f"since {self.grant.since}, flag {self.grant.flag or 'none'}"
        fault = f" | not gated: {self.fault}" if self.fault else ""
        return f"{self.agent:18} + {self.tool:24} {since}{fault}"


def gained(folder: Path, old: str, new: str) -> tuple[Gain, ...]:
    """Compares the cards in `folder` at two git revisions. Raises RevisionError, saying what to do,
    where git cannot."""
    old_cards, _ = _read(folder, old)
    new_cards, flags = _read(folder, new)
    day = committed_on(folder, new)
    gains: list[Gain] = []
    for agent, card in sorted(new_cards.items()):
        old_tools = _tools(old_cards.get(agent, {}))
        grants = cast("dict[str, Any]", card.get("tool_grants") or {})
        for tool in _tools(card):
            if tool in old_tools:
                continue
            grant = None
            if grants.get(tool) is not None:
                grant = ToolGrant.model_validate(grants[tool])
            newcomer = agent not in old_cards
            # A new agent is gated as a whole, by its promotion.
            fault = None if newcomer and grant is None else _fault(grant, flags, day)
            gains.append(Gain(agent, tool, grant, fault, newcomer))
    return tuple(gains)


def print_gained(folder: Path, old: str, new: str) -> int:
    """Prints a line for each gain and their number; returns 1 when one is not gated. Raises RevisionError."""
    gains = gained(folder, old, new)
    loose = sum(1 for gain in gains if gain.fault)
    summary = f"{many(len(gains), 'tool')} gained, {loose} of them not gated"
    print(*[gain.line() for gain in gains], f"{folder.name}, {old} to {new}: {summary}", sep="\n")
    return int(loose > 0)


def _fault(grant: ToolGrant | None, flags: dict[str, Any], day: datetime.date) -> str | None:
    if grant is None:
        return "no grant: put tool_grants with since and flag on the card"
    if (day - grant.since).days >= GATED_DAYS:
        return None
    if grant.flag is None:
        return f"no flag: a new tool stays behind one for {GATED_DAYS} days"
    if flags.get(grant.flag):
        return f"flag {grant.flag!r} is on by default: turn it off in settings/default.yaml"
    return None


def _read(folder: Path, revision: str) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Returns the cards by id and the flags by name, as their files have them: an old card may not
    fit today's fields."""
    try:
        with checkout(folder, revision) as (_, old):
            cards: dict[str, dict[str, Any]] = {}
            for path in old.rglob("*.yaml"):
                # Other files may lie among the cards; a card has these two fields since there are any.
                # What a card's new version gains is gated by its promotion.
                is_card = path.name != "deck.yaml" and not path.name.endswith(NEXT)
                card = _parse(path, revision) if is_card else {}
                if "id" in card and "description" in card:
                    cards[str(card["id"])] = card
            settings = old.parent / "settings" / "default.yaml"
            flags = _parse(settings, revision).get("flags") if settings.exists() else None
    except RevisionError as error:
        raise RevisionError(f"{error}; check both revisions") from error
    return cards, flags or {}


def _parse(path: Path, revision: str) -> dict[str, Any]:
    try:
        value: Any = load_yaml(path.read_text(encoding="utf-8"))
    except UNREADABLE as error:
        raise RevisionError(f"{path.name} at {revision} is no YAML: {error}") from error
    if is_object(value):
        return value
    return {}


def _tools(card: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(tool) for tool in cast("list[Any]", card.get("tools") or ()))
