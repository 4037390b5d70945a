"""How a deck's models are chosen by the settings, and its teams bound on them."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kit.compose.deck import Deck
from kit.core.errors import SettingsError, StoreBusy, nearest
from kit.core.model import OFFLINE
from kit.models.access import ModelAccess
from kit.patterns.stages import Stages
from kit.runtime.team import Models, Places, Team, bind
from kit.settings import Settings
from kit.tools.tool import Toolbox

if TYPE_CHECKING:
    from kit.stores.bus.shared_turns import SharedTurns
    from kit.stores.turn_store import TurnStore


def choose_models(settings: Settings, deck: Deck) -> str | None:
    """Which models to bind: what KIT_MODEL says; else each card's own, with a key or where the
    orchestrator's needs none of the settings; else the offline stand-in. Raises SettingsError for a
    model that models.yaml does not have."""
    lead = deck.models.get(deck.cards[deck.settings.orchestrator].model)
    if settings.model or settings.openai_api_key or (lead is not None and lead.is_self_contained):
        key = settings.model
        wish = f"KIT_MODEL={settings.model}"
    else:
        if settings.openai_base_url:
            key = "local"
        else:
            key = "offline"
        wish = "OPENAI_BASE_URL without KIT_MODEL"
    if key is not None and key not in {OFFLINE.key, *deck.models}:
        fix = ""
        if key == "local":
            fix = "give it an entry `local: {provider: openai}`, or "
        raise SettingsError(
            f"{wish} means the model {key!r}, and models.yaml of the deck {deck.name!r} has none of that name; {fix}"
            f"set KIT_MODEL to another: {nearest(key, deck.models)}"
        )
    return key


def access_of(settings: Settings) -> ModelAccess:
    """What of the settings building a model needs."""
    return ModelAccess(
        api_key=settings.openai_api_key,
        base_url=settings.openai_base_url,
        pace=settings.pace,
        secrets=settings.secrets,
        variables=settings.variables,
        langsmith=settings.langsmith,
    )


@dataclass(frozen=True)
class TeamBinder:
    """Binds the teams of a deck, which keep within the deck's limits together."""

    deck: Deck
    tools: Toolbox
    settings: Settings
    services: Mapping[str, object]
    faults: bool
    store: "TurnStore"
    admission: AbstractAsyncContextManager[None] | None
    """Lets so many turns in as the deck allows at once; None: any number."""
    places: Places = field(default_factory=Places)

    def stages(self, models: Models | None) -> Stages:
        """The teams on these models, their prompts kept for the traces.

        Raises BindError where one cannot do the work. Nothing is called.
        """

        def bound(deck: Deck) -> Team:
            team = bind(deck, models, self.tools, access_of(self.settings), self.places)
            team = replace(team, admission=self.admission)
            # A trace without its prompts is better than no answer.
            with suppress(StoreBusy):
                self.store.keep_prompts(team.prompts)
            # a monolith asks nobody
            if team.orchestrator.sub_cards:
                team = team.with_services(self.services)
            if self.faults:
                team = team.with_faults()
            return team

        return Stages(bound(self.deck), bound)


def admission_of(
    deck: Deck, shared: "SharedTurns | None"
) -> AbstractAsyncContextManager[None] | None:
    """Returns what lets so many turns in as the deck allows at once; None where it allows any number."""
    at_once = deck.settings.turns_at_once
    if not at_once:
        return None
    if shared is None:
        return asyncio.Semaphore(at_once)
    from kit.stores.bus.shared_turns import SharedAdmission  # loads the client of Redis

    return SharedAdmission(shared, at_once)
