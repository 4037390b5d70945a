"""The team of each pattern and cohort, bound when a turn first asks for it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

from langchain_core.messages import HumanMessage

from kit.compose.canary import NOBODY, versions_of, with_next
from kit.compose.deck import Deck
from kit.compose.prompts import with_persona
from kit.core.errors import UnknownId
from kit.core.model import OFFLINE
from kit.models.direct_call import langsmith_hears
from kit.models.offline import similarity
from kit.patterns.topology import with_topologies
from kit.runtime.pattern import Pattern
from kit.runtime.team import Team

Closing = Callable[[], Awaitable[None]]
_Key: TypeAlias = tuple[str, str | None, "_Cohort", str, frozenset[str]]
_Cohort = frozenset[tuple[str, bool]]
"""The flags, each with its value, in which a request differs from the deck."""
TEAMS = 48
"""Teams with a tenant's persona that are kept; the one that was longest not asked for goes."""
Flags: TypeAlias = Mapping[str, bool]
NO_FLAGS: Flags = MappingProxyType({})


@dataclass(frozen=True)
class Stages:
    """The team of each pattern: the deck's own, or one bound from the same cards, models and tools
    when it is first asked for."""

    plain: Team
    bind: Callable[[Deck], Team]
    bound: dict[_Key, Team] = field(default_factory=dict[_Key, Team])
    """By stage, surface, cohort, persona and the cards in a new version; of those with a persona the one asked for
    last comes last."""
    retired: list[Closing] = field(default_factory=list[Closing])
    """What belongs to teams that are no longer kept; turns of theirs may still run."""

    def team(
        self,
        pattern: Pattern,
        surface: str | None = None,
        flags: Flags = NO_FLAGS,
        persona: str = "",
        newer: frozenset[str] = NOBODY,
    ) -> Team:
        """The team a pattern runs with on a surface, the deck's own when none is named, under these
        flags, with that persona and the new versions of these cards (`new_for`).

        Flags that are not given are as in the deck. A team is bound once and kept (decisions 28), of those
        with a persona the newest. Raises BindError or UnknownId
        where its deck cannot be bound, and UnknownId for a surface or a flag that the deck does not know.
        """
        topologies = self.plain.deck.settings.topologies
        if surface is not None and surface not in topologies:
            none = "this deck has none; name no surface, or write it under topologies in deck.yaml"
            raise UnknownId("surface", surface, topologies, none)
        declared = self.plain.deck.flags
        for flag in flags.keys() - declared.keys():
            raise UnknownId("flag", flag, declared)
        cohort = frozenset(flags.items() - declared.items())
        key = (
            pattern.name if pattern.stage else "",
            surface,
            cohort,
            persona,
            newer,
        )
        if key not in self.bound:
            deck = with_next(self.plain.deck, newer)
            team = self.plain
            if cohort or persona or newer:
                team = self.bind(
                    with_persona(replace(deck, flags={**deck.flags, **flags}), persona)
                )
            if pattern.stage:
                team = pattern.team(team.deck, self.bind)
            if deck.next_cards:
                team = replace(team, versions=versions_of(self.plain.deck, newer))
            self.bound[key] = with_topologies(team, surface)
        if persona:
            # A server has any number of tenants: those asked for longest ago are bound anew.
            self.bound[key] = self.bound.pop(key)
            with_personas = [bound_key for bound_key in self.bound if bound_key[3]]
            for oldest in with_personas[:-TEAMS]:
                self.retired.extend(self.bound.pop(oldest).closing)
        return self.bound[key]

    async def prepare(self, pattern: Pattern) -> Team:
        """The deck's own team of a pattern, for whose first turn nothing is left to be learnt: what its cards' requests
        tell takes seconds. Raises BindError as `team` does."""
        team = self.team(pattern)
        lists = sorted({card.requests for card in team.cards if card.requests})
        if lists:
            # Messages are cut into parts by it, whatever the model.
            await asyncio.to_thread(similarity.learn, tuple(lists), "words")
        model = team.orchestrator.model
        if model.spec.provider == OFFLINE.provider:
            # The stand-in routes by more than that: of a monolith by its own requests too.
            with langsmith_hears(False):
                await model.runnable.ainvoke([HumanMessage("Which of you answers this question?")])
        return team

    async def aclose(self) -> None:
        """Closes the connections of every team that was bound."""
        for team in self.bound.values():
            await team.aclose()
        for close in self.retired:
            await close()
