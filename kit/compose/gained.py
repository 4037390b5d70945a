"""Which agent gained which tool between two revisions of the cards, and whether the gain is gated."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kit.compose.read import read_cards
from kit.compose.revision import RevisionError, checkout, committed_on
from kit.core.card import AgentCard, ToolGrant
from kit.core.display.count import many

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
    where git cannot, or where a card of one of them cannot be read."""
    old_cards, _ = _read(folder, old)
    new_cards, flags = _read(folder, new)
    day = committed_on(folder, new)
    gains: list[Gain] = []
    for agent, card in sorted(new_cards.items()):
        newcomer = agent not in old_cards
        old_tools = () if newcomer else old_cards[agent].tools
        for tool in card.tools:
            if tool in old_tools:
                continue
            grant = card.tool_grants.get(tool)
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


def _fault(grant: ToolGrant | None, flags: Mapping[str, bool], day: datetime.date) -> str | None:
    if grant is None:
        return "no grant: put tool_grants with since and flag on the card"
    if (day - grant.since).days >= GATED_DAYS:
        return None
    if grant.flag is None:
        return f"no flag: a new tool stays behind one for {GATED_DAYS} days"
    if flags.get(grant.flag):
        return f"flag {grant.flag!r} is on by default: turn it off in settings/default.yaml"
    return None


def _read(folder: Path, revision: str) -> tuple[Mapping[str, AgentCard], Mapping[str, bool]]:
    """Returns the cards by id and the flags by name. What a card's new version gains is gated by its promotion."""
    try:
        with checkout(folder, revision) as (_, old_folder):
            cards, flags, faults = read_cards(old_folder)
    except RevisionError as error:
        raise RevisionError(f"{error}; check both revisions") from error
    if faults:
        raise RevisionError(f"at {revision} a card cannot be read: {faults[0]}")
    return cards, flags
