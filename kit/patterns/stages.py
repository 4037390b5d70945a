"""The team of each pattern and cohort, bound when a turn first asks for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from kit.compose.deck import Deck
from kit.compose.prompts import with_persona
from kit.core.errors import UnknownId
from kit.patterns.topology import with_topologies
from kit.runtime.pattern import Pattern
from kit.runtime.team import Team

_Cohort = frozenset[tuple[str, bool]]
"""The flags, each with its value, in which a request differs from the deck."""
NO_FLAGS: Mapping[str, bool] = MappingProxyType({})


@dataclass(frozen=True)
class Stages:
    """The team of each pattern: the deck's own, or one bound from the same cards, models and tools when it is first asked for."""

    plain: Team
    bind: Callable[[Deck], Team]
    bound: dict[tuple[str, str, _Cohort, str], Team] = field(default_factory=dict[tuple[str, str, _Cohort, str], Team])
    """By stage, surface, cohort and persona."""

    def team(self, pattern: Pattern, surface: str | None = None, flags: Mapping[str, bool] = NO_FLAGS, persona: str = "") -> Team:
        """The team a pattern runs with on a surface, the deck's own when none is named, under these flags, with that persona.

        Flags that are not given are as in the deck. A team is bound once and kept (decisions 28). Raises BindError or UnknownId
        where its deck cannot be bound, and UnknownId for a surface or a flag that the deck does not know.
        """
        topologies = self.plain.deck.settings.topologies
        if surface is not None and surface not in topologies:
            raise UnknownId("surface", surface, topologies)
        cohort = _cohort(flags, self.plain.deck.flags) if flags else frozenset[tuple[str, bool]]()
        key = (pattern.name if pattern.stage else "", surface or self.plain.deck.surface, cohort, persona)
        if key not in self.bound:
            deck = self.plain.deck
            own = with_persona(replace(deck, flags={**deck.flags, **flags}), persona)
            plain = self.bind(own) if cohort or persona else self.plain
            team = pattern.team(plain.deck, self.bind) if pattern.stage else plain
            self.bound[key] = with_topologies(team, surface)
        return self.bound[key]

    async def aclose(self) -> None:
        """Closes the connections of every team that was bound."""
        for team in self.bound.values():
            await team.aclose()


def _cohort(flags: Mapping[str, bool], declared: Mapping[str, bool]) -> _Cohort:
    for flag in flags.keys() - declared.keys():
        raise UnknownId("flag", flag, declared)
    return frozenset(flags.items() - declared.items())
