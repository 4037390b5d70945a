"""The team of each pattern, bound when a turn first asks for it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kit.compose.deck import Deck
from kit.core.errors import UnknownId
from kit.patterns.topology import with_topologies
from kit.runtime.pattern import Pattern
from kit.runtime.team import Team


@dataclass(frozen=True)
class Stages:
    """The team of each pattern: the deck's own, or one bound from the same cards, models and tools when it is first asked for."""

    plain: Team
    bind: Callable[[Deck], Team]
    bound: dict[tuple[str, str], Team] = field(default_factory=dict[tuple[str, str], Team])
    """By stage and surface."""

    def team(self, pattern: Pattern, surface: str | None = None) -> Team:
        """The team a pattern runs with on a surface; the deck's own surface when none is named.

        Raises BindError or UnknownId where its deck cannot be bound, and UnknownId for a surface that the deck does not know.
        """
        topologies = self.plain.deck.settings.topologies
        if surface is not None and surface not in topologies:
            raise UnknownId("surface", surface, topologies)
        key = (pattern.name if pattern.stage else "", surface or self.plain.deck.surface)
        if key not in self.bound:
            team = pattern.team(self.plain.deck, self.bind) if pattern.stage else self.plain
            self.bound[key] = with_topologies(team, surface)
        return self.bound[key]

    async def aclose(self) -> None:
        """Closes the connections of every team that was bound."""
        for team in self.bound.values():
            await team.aclose()
