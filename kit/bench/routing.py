"""Routes a case file over a catalogue of sub-agents, through the real orchestrator turn with stub sub-agents."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kit.bench.case import Case, read_cases
from kit.bench.json_lines import read_text
from kit.compose.deck import Deck, DeckSettings
from kit.core.bodies.turn import TurnStarted
from kit.core.card import AgentCard
from kit.core.context import Principal, Session
from kit.core.errors import DataError
from kit.core.limits import read_json
from kit.core.outcome import AgentCall, Answer, Outcome
from kit.core.record import Message
from kit.models.access import ModelAccess
from kit.patterns.agents_as_tools import MEDIATED
from kit.runtime.context import RunContext
from kit.runtime.handle import Host
from kit.runtime.pattern import Pattern
from kit.runtime.team import Models, Team, bind
from kit.runtime.turn import run_turn
from kit.sinks.recorder import Recorder
from kit.stores.sqlite import SqliteStore
from kit.stores.turn_store import TurnStore

CAP = 8
"""Sub-agents one message of a case file may reach."""
BENCH_USER = Principal(tenant_id="bench", user_id="bench")
"""On whose behalf turns are played whose user does not matter."""


@dataclass(frozen=True)
class Stub:
    """A sub-agent that only notes that it was asked, or says what a case has it say."""

    card: AgentCard
    time_budget: float | None = None
    lines: Mapping[str, str] = field(default_factory=dict[str, str])
    """Message of the user -> what to answer."""

    async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
        text = "Noted."
        if self.lines:
            for event in ctx.turn.log.events:
                if isinstance(event.body, TurnStarted):
                    text = self.lines.get(event.body.message, text)
        return Answer(call_id=call.call_id, agent=self.card.id, text=text)


@dataclass(frozen=True)
class RoutingKit:
    """What a turn needs when only its routing matters.

    Who gives it no store gets one in memory, whose `close` is theirs to call.
    """

    team: Team
    store: TurnStore = field(default_factory=lambda: SqliteStore(":memory:"))
    recorder: Recorder = field(default_factory=Recorder)
    cassette: None = None
    pattern: Pattern = MEDIATED
    today: str = "2026-11-01"


@dataclass(frozen=True)
class Catalog:
    """Sub-agents to route to; `names` maps card ids back to the catalogue's own ids."""

    cards: tuple[AgentCard, ...]
    names: Mapping[str, str]


def read_catalog(path: Path) -> Catalog:
    """Reads {"sub_agents": [{"id", "description"}]}; ids that are no legal tool name get a legal twin.

    Raises DataError naming the file when it is missing or not of that shape.
    """
    try:
        entries: list[dict[str, Any]] = read_json(read_text(path))["sub_agents"]
        pairs = [(str(entry["id"]), str(entry["description"])) for entry in entries]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f'{path}: not a catalogue; it needs {{"sub_agents": [{{"id", "description"}}]}}'
        ) from error
    names: dict[str, str] = {}
    cards: list[AgentCard] = []
    for name, description in pairs:
        card_id = _legal(name, names)
        names[card_id] = name
        cards.append(_catalog_card(card_id, description, ()))
    return Catalog(tuple(cards), names)


def _catalog_card(card_id: str, description: str, requests: tuple[str, ...]) -> AgentCard:
    return AgentCard(id=card_id, description=description, requests=requests, model="offline")


def catalog_of(deck: Deck) -> Catalog:
    """A catalogue of the sub-agents that a deck's orchestrator may ask, as their cards describe them."""
    subs = deck.active_sub_agents(deck.cards[deck.settings.orchestrator])
    cards = [_catalog_card(card.id, card.description, card.requests) for card in subs]
    return Catalog(tuple(cards), {card.id: card.id for card in cards})


def star_deck(
    cards: Sequence[AgentCard], description: str, cap: int = CAP, known: Sequence[str] = ()
) -> Deck:
    """A deck of these sub-agents and an orchestrator, who may ask `cap` of them in one turn;
    `known` are ids of their tools."""
    ids = tuple(card.id for card in cards)
    orchestrator = AgentCard(
        id="orchestrator",
        role="orchestrator",
        description=description,
        model="offline",
        sub_agents=ids,
    )
    settings = DeckSettings(orchestrator="orchestrator", required_blocks=(), cap=cap)
    return Deck.of([orchestrator, *cards], settings=settings, known=known)


def catalog_team(catalog: Catalog, models: Models = "offline") -> Team:
    """An orchestrator over stubs of the catalogue; when nothing fits, nothing is called (decisions 5)."""
    deck = star_deck(catalog.cards, "Routes each message to the sub-agents that can answer it.")
    team = bind(deck, models, {}, ModelAccess(pace=0.0))
    return team.with_agents({card.id: Stub(card) for card in catalog.cards})


async def route_case(case: Case, catalog: Catalog, kit: Host) -> list[dict[str, Any]]:
    """Predictions for one dialogue: {"id", "turn", "called"}; history is what the file says was answered."""
    session = Session(id=case.id, principal=BENCH_USER)
    history: list[Message] = []
    in_play: tuple[str, ...] = ()
    predictions: list[dict[str, Any]] = []
    for number, ask in enumerate(case.turns):
        reply = await run_turn(ask.user, session, kit, history=tuple(history), in_play=in_play)
        now = reply.routing.invoked
        called = [catalog.names[agent] for agent in now]
        predictions.append({"id": case.id, "turn": number, "called": called})
        in_play = now or in_play
        history += ask.messages(f"{case.id}-{number}")
    return predictions


async def route_file(cases: Path, catalog: Catalog, out: Path, models: Models = "offline") -> int:
    """Routes every turn of a file by a model and writes one prediction a line; returns how many turns were routed.

    Raises DataError for a file without a case, and for what `read_cases` refuses.
    """
    count = 0
    with closing(SqliteStore(":memory:")) as store, out.open("w", encoding="utf-8") as file:
        kit = RoutingKit(catalog_team(catalog, models), store)
        for case in read_cases(cases, set(catalog.names.values()), with_labels=False):
            for prediction in await route_case(case, catalog, kit):
                file.write(json.dumps(prediction) + "\n")
                count += 1
            _progress(count)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    if not count:
        line = '{"id": "coffee-1", "user": "find coffee deals"}'
        raise DataError(f"{cases} holds no case: write one a line, such as {line}")
    return count


def _progress(count: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{count} turns", end="", file=sys.stderr, flush=True)


def _legal(name: str, names: Mapping[str, str]) -> str:
    # Providers take names of tools of at most 64 characters, and `ask_` is put in front.
    legal = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:56] or "agent"
    while legal in names:
        legal = f"{legal[:54]}_2"
    return legal
