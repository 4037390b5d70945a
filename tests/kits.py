"""Small kits for tests: cards made in Python, scripted models, an in-memory store."""

import asyncio
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from kit.compose.deck import Deck, DeckSettings
from kit.compose.parts import Guards
from kit.compose.yaml_loader import load_yaml
from kit.core.bodies.call import AgentStarted
from kit.core.card import AgentCard, Policy
from kit.core.context import Principal, Session
from kit.core.event import Event
from kit.core.outcome import BESIDE, SET_ASIDE, Failure
from kit.core.status import OWN
from kit.core.trace import Span, SpanKind
from kit.models.scripted import Line, Script, ScriptedModel
from kit.patterns.agents_as_tools import MEDIATED
from kit.runtime.handle import Reply
from kit.runtime.pattern import Pattern
from kit.runtime.recording.cassette import Cassette
from kit.runtime.team import Team, bind
from kit.settings import HOME, Settings
from kit.sinks.recorder import Recorder
from kit.stores.engines.sqlite_connection import SqliteConnection
from kit.stores.sqlite import SqliteStore, open_for_reading

ALICE = Session(
    id="e1",
    principal=Principal(tenant_id="acme", user_id="alice"),
    locale="en-GB",
    location="Leeds",
)


def statuses_of(deck: str) -> set[str]:
    """The statuses that a shipped deck declares. Its file alone is read: every process of the tests
    imports this module, and loading a deck takes half a second."""
    return {*load_yaml((HOME / "cards" / deck / "deck.yaml").read_text())["statuses"]}


MIXED = "My receipt didn't scan, how many points do I have, and find coffee deals"
"""A question of three parts for the consumer deck."""

STATUSES = frozenset({*OWN, *statuses_of("consumer"), *statuses_of("manga")})
"""What the tools of the shipped decks may send."""
CONSUMER_AGENTS = (
    "shop",
    "support",
    "rewards",
    "ereceipts",
    "play",
    "offer_details",
    "restaurants",
    "retailer_context",
)
"""The sub-agents of the consumer deck that answer."""
TERSE = Guards(failsafe=False, overlap=False, verbatim=False)
"""For scripts whose queries and counts are not about the message; tests of these guards pass `guards=Guards()`."""


Kind = TypeVar("Kind")


def bodies(log: Reply | Iterable[Event], *kinds: type[Kind]) -> list[Kind]:
    """What the events of these kinds say, in order."""
    events = log.events if isinstance(log, Reply) else log
    return [event.body for event in events if isinstance(event.body, kinds)]


def failures(reply: Reply) -> list[Failure]:
    """What became of the sub-agents that gave no answer."""
    return [outcome for outcome in reply.outcomes if isinstance(outcome, Failure)]


def agents_asked(reply: Reply) -> list[tuple[str, str]]:
    """Each sub-agent that ran, with what it was asked, in order."""
    return [(body.agent, body.query) for body in bodies(reply, AgentStarted)]


def spans(reply: Reply, kind: SpanKind) -> list[Span]:
    """The spans of a turn that are of this kind."""
    return [span for span in reply.trace.spans if span.kind == kind]


def logged(reply: Reply) -> str:
    """The whole log of a turn."""
    return "\n".join(event.model_dump_json() for event in reply.events)


def driver_of(store: SqliteStore) -> sqlite3.Connection:
    """The connection that the thread of a store's loop has to its file."""
    return cast("SqliteConnection", store._db).driver


def nothing_runs() -> bool:
    """Whether the running loop has no task but the one that asks."""
    return asyncio.all_tasks() == {asyncio.current_task()}


@dataclass
class SmallKit:
    """What run_turn needs, and nothing else."""

    team: Team
    store: SqliteStore
    recorder: Recorder = field(default_factory=Recorder)
    cassette: Cassette | None = None
    pattern: Pattern = MEDIATED
    today: str = "2026-11-01"


def answering(text: str, delay: float = 0.0) -> ScriptedModel:
    """A sub-agent's model that always says `text`."""
    return ScriptedModel(lambda _: Line(text, delay=delay))


def failing(error: BaseException, delay: float = 0.0) -> ScriptedModel:
    return ScriptedModel(lambda _: Line(error=error, delay=delay))


def asks(
    *agents: str, text: str = "Let me look.", query: str | None = None, intents: int | None = None
) -> Line:
    """An orchestrator's line that asks these agents."""
    count = intents or len(agents)
    return Line(
        text,
        calls=[
            (f"ask_{agent}", {"query": query or f"about {agent}", "intent_count": count})
            for agent in agents
        ],
    )


def classifies(*agents: str, part: str) -> dict[str, str | BaseChatModel]:
    """The models of one turn of a classifier gateway that hears one part of the message alone and
    asks these agents for it; all but the classifier are the offline stand-in."""
    route = Line(calls=[("submit_route", {"labels": list(agents), "query": part})])
    rest = Line(calls=[("submit_query", {"query": part})])
    return {"orchestrator": ScriptedModel(route, *[rest] * (len(agents) - 1)), "*": "offline"}


def stitched(messages: list[BaseMessage]) -> Line:
    """Composes by joining every tool result of the turn, without those, and the references, that it
    is told to leave out."""
    last = max(i for i, m in enumerate(messages) if isinstance(m, HumanMessage))
    results = [
        re.sub(rf"\n\n\({BESIDE} [^)]*\)", "", str(m.content))
        for m in messages[last:]
        if isinstance(m, ToolMessage)
    ]
    return Line(" | ".join(result for result in results if result != SET_ASIDE))


def routing(route: Line | Callable[[str], Line]) -> Callable[[list[BaseMessage]], Line]:
    """The script of an orchestrator for any number of turns: says this line, or what a request calls
    for, then joins what came of its calls."""

    def say(seen: list[BaseMessage]) -> Line:
        if seen[-1].type == "tool":
            return stitched(seen)
        return route if isinstance(route, Line) else route(str(seen[-1].content))

    return say


def leading(route: Line | Callable[[str], Line]) -> ScriptedModel:
    """The model of such an orchestrator."""
    return ScriptedModel(routing(route))


def repeats(messages: Sequence[BaseMessage]) -> Line:
    """A line that says what a tool has said."""
    return Line(str(messages[-1].content))


def lead_over(*cards: AgentCard, **options: Any) -> Deck:
    """A lead over these cards, in a deck that requires no block."""
    agents = tuple(card.id for card in cards)
    lead = AgentCard(id="lead", description="Leads.", model="offline", sub_agents=agents)
    return Deck.of([lead, *cards], required_blocks=(), **options)


def desk_deck(tools: object, *listed: str, **card: Any) -> Deck:
    """A lead over a desk, whose card lists these of the deck's tools."""
    desk = AgentCard(id="desk", description="Looks up.", model="offline", tools=listed, **card)
    return lead_over(desk, tools=tools)


def desk_models(*script: Script) -> dict[str, BaseChatModel]:
    """The models of a lead that asks its desk once, and of the desk."""
    return {"lead": ScriptedModel(asks("desk"), stitched), "desk": ScriptedModel(*script)}


OFFLINE = Settings(store=":memory:", pace=0.0, today="2026-11-01", model="offline")
"""Settings of a kit that reads nothing of the machine and waits for nothing."""
EMBEDDED = Settings(store=":memory:", pace=0.0, today="2026-11-01")
"""The same with whatever model the environment names: the stand-in where it names none."""


def small_deck(agents: Sequence[str], cards: Sequence[AgentCard] = (), **settings: Any) -> Deck:
    """An orchestrator over `agents`; `cards` replace the plain ones with the same id."""
    own = {card.id: card for card in cards}
    plain = [
        own.pop(i, AgentCard(id=i, description=f"Answers questions about {i}.", model="offline"))
        for i in agents
    ]
    lead = own.pop(
        "orchestrator",
        AgentCard(
            id="orchestrator",
            role="orchestrator",
            description="Routes.",
            model="offline",
            sub_agents=tuple(agents),
        ),
    )
    settings.setdefault("guards", TERSE)
    settings.setdefault("statuses", sorted(STATUSES))
    defaults = settings.pop("defaults", Policy(time_budget_ms=8000))
    return Deck.of(
        [lead, *plain, *own.values()],
        settings=DeckSettings(
            orchestrator="orchestrator", required_blocks=(), defaults=defaults, **settings
        ),
    )


def small_kit(
    lead: BaseChatModel | Sequence[Script],
    models: Mapping[str, BaseChatModel],
    tools: Mapping[str, Any] | None = None,
    cards: Sequence[AgentCard] = (),
    cassette: Cassette | None = None,
    **settings: Any,
) -> SmallKit:
    """A kit of one orchestrator and the agents in `models`."""
    deck = small_deck(list(models), cards, **settings)
    leader = lead if isinstance(lead, BaseChatModel) else ScriptedModel(*lead)
    team = bind(deck, {**models, "orchestrator": leader}, tools or {})
    return SmallKit(team, SqliteStore(":memory:"), cassette=cassette)


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Writes texts by their paths below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def content_of(folder: Path) -> str:
    """Everything that the files of a folder hold: their bytes, and of stores each row, logs unpacked."""
    parts: list[str] = []
    for file in folder.rglob("*"):
        if file.is_file():
            parts.append(file.read_bytes().decode(errors="replace"))
        if file.suffix == ".db":
            with closing(open_for_reading(file)) as db:
                parts += db.iterdump()
                logs = db.execute("SELECT sqlar_uncompress(log, size) FROM logs")
                parts += (log for (log,) in logs)
    return "\n".join(parts)
