"""An orchestrator over sub-agents of a study's own, and somebody who asks it: what most studies start from."""

import asyncio
from collections.abc import Collection, Iterable
from typing import Any

from kit.bench.routing import BENCH_USER, RoutingKit
from kit.compose.deck import Deck
from kit.compose.parts import DeckSettings
from kit.core.card import AgentCard
from kit.core.context import DynamicContext, InheritedContext, Session
from kit.runtime.budget import Ledger
from kit.runtime.context import RunContext, SessionMemory, TurnState
from kit.runtime.handle import Host
from kit.runtime.log import TurnLog
from kit.runtime.speech.progress import Progress
from kit.runtime.team import Team

ORCHESTRATOR = "orchestrator"


def study_session(name: str) -> Session:
    """Returns a conversation of the bench's own user."""
    return Session(id=name, principal=BENCH_USER)


def plain_cards(names: Iterable[str]) -> list[AgentCard]:
    """Returns a card without tools for each name."""
    return [
        AgentCard(id=name, description=f"Answers about {name}.", model="offline") for name in names
    ]


def study_deck(cards: Collection[AgentCard], cap: int = 8, **settings: Any) -> Deck:
    """Returns a deck whose orchestrator may ask these sub-agents, eight in one turn; `settings` are
    more fields of deck.yaml."""
    lead = AgentCard(
        id=ORCHESTRATOR,
        description="Asks.",
        model="offline",
        sub_agents=tuple(card.id for card in cards),
    )
    return Deck.of(
        [lead, *cards],
        settings=DeckSettings.model_validate(
            {"orchestrator": lead.id, "required_blocks": (), "cap": cap, **settings}
        ),
        name="study",
    )


def kept_by(host: Host | None, team: Team) -> RoutingKit:
    """A kit for this team whose turns are kept, and copied, where those of `host` are; None keeps nothing."""
    return RoutingKit(team) if host is None else RoutingKit(team, host.store, host.recorder)


def direct_context(team: Team, callees: Collection[str], cap: int = 8) -> RunContext:
    """Returns the orchestrator's context on the running loop without a turn: for calling `dispatch`
    and `fan_out` directly."""
    log = TurnLog("direct", asyncio.get_running_loop().time)
    dynamic = DynamicContext(date="2026-11-01", user_id=BENCH_USER.user_id, locale="en-US")
    settings = DeckSettings(orchestrator=team.root, required_blocks=())
    state = TurnState(
        log,
        team.agents,
        dynamic,
        "direct call",
        settings,
        SessionMemory(),
        Progress(log, settings, settings.vocabulary),
        cap=cap,
    )
    inherited = InheritedContext(principal=BENCH_USER, episode_id="direct", locale="en-US")
    return RunContext(
        state, inherited, Ledger(), log.new_span(), callees=frozenset(callees), path=team.root
    )
