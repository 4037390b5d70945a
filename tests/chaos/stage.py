"""Plays scenes: one small kit, whose agents look up their fate in the scene that is on."""

import asyncio
import logging
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import BaseTool

from kit.compose.parts import Guards
from kit.core.card import AgentCard
from kit.core.context import OPERATOR, Session
from kit.core.envelope import EnricherRequest
from kit.core.outcome import AgentCall, Failure, Outcome, Reason
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.clock import run_virtual
from kit.runtime.context import Agent, RunContext
from kit.runtime.turn import Reply, run_turn
from kit.stores.sqlite import SqliteStore, open_for_reading
from kit.tools.enricher import CAVEAT, EnrichError, EnricherSpec, enricher_tool
from kit.tools.tool import tool_context
from kit.worlds.consumer.wording import WORDINGS
from tests.chaos import strangers
from tests.chaos.composer import lead
from tests.chaos.judge import Tally, Witness
from tests.chaos.scene import AGENTS, Fate, Scene, scene
from tests.kits import ALICE, SmallKit, small_kit
from tests.listening import WHOSE, Heard

TOOLS = ("lookup", "second")
PEERS: dict[str, Reason] = {
    "refuses": "refusal",
    "over_budget": "budget",
    "unsure": "low_confidence",
}


@dataclass
class Stage:
    """Holds the scene that is on."""

    scene: Scene
    lead_model: BaseChatModel | None = None
    store: str = ":memory:"
    heard: Heard = field(default_factory=Heard)
    logged: list[str] = field(default_factory=list[str])
    planted: int = 0
    """Envelopes about somebody else that were sent."""

    def fate(self, agent: str) -> Fate:
        return next(
            fate for fate in (*self.scene.fates, *self.scene.uncalled) if fate.agent == agent
        )

    def kit(self) -> SmallKit:
        tools = {name: self._tool(name) for name in TOOLS}
        cards = [
            AgentCard(
                id=agent,
                description=f"Answers what people ask about their {topic}.",
                model="offline",
                tools=tuple(tools),
            )
            for agent, topic in AGENTS.items()
        ]
        models = {agent: ScriptedModel(self._worker(agent)) for agent in AGENTS}
        orchestrator = self.lead_model or ScriptedModel(self._lead)
        kit = small_kit(orchestrator, models, tools, cards=cards, guards=Guards())
        kit.store.close()
        kit.store = SqliteStore(self.store)
        kit.team = self.heard.team(kit.team)
        peers: dict[str, Agent] = {a: _Peer(self, kit.team.agents[a]) for a in AGENTS}
        kit.team = kit.team.with_agents(peers)
        return kit

    @contextmanager
    def listening(self) -> Generator[None]:
        """Keeps whatever anyone logs."""
        root, ear = logging.getLogger(), _Log(self.logged)
        level = root.level
        root.addHandler(ear)
        root.setLevel(logging.DEBUG)
        try:
            yield
        finally:
            root.setLevel(level)
            root.removeHandler(ear)

    def _lead(self, seen: list[BaseMessage]) -> Line:
        if WHOSE.get() == "neighbour":
            return strangers.neighbours_line(
                self.scene, isinstance(seen[-1], ToolMessage), leads=True
            )
        return lead(self.scene, seen)

    def _tool(self, name: str) -> BaseTool:
        spec = EnricherSpec(
            id=name,
            description=f"The {name}.",
            domain_type="support",
            enricher_id="articles",
            wording=WORDINGS["support", "articles"],
        )

        async def enrich(request: EnricherRequest) -> strangers.Envelope:
            if WHOSE.get() == "neighbour":
                return strangers.owned(request, strangers.said_by(self.scene))
            fate = self.fate(tool_context().agent)
            match fate.kind, name:
                case "tool_raises", _:
                    raise ValueError(fate.raw)
                case ("no_data", _) | ("part_of_data", "second") if (
                    fate.kind == "no_data" or self.scene.seed % 2
                ):
                    raise EnrichError("unavailable", fate.raw)
                case ("foreign_principal", _) | ("part_of_data", "second"):
                    self.planted += 1
                    return strangers.foreign(request, self.scene, fate)
                case kind, _:
                    return strangers.owned(
                        request, fate.answer, "partial" if kind == "partial" else "ok"
                    )

        return enricher_tool(spec, enrich, {})

    def _worker(self, agent: str) -> Any:
        def line(messages: list[BaseMessage]) -> Line:
            if WHOSE.get() == "neighbour":
                return strangers.neighbours_line(
                    self.scene, isinstance(messages[-1], ToolMessage), leads=False
                )
            fate = self.fate(agent)
            match fate.kind:
                case "raise":
                    return Line(error=RuntimeError(fate.raw), delay=0.2)
                case "hang":
                    return Line(fate.answer, delay=600)
                case "empty":
                    return Line("")
                case "cancelled":
                    return Line(error=asyncio.CancelledError(fate.raw))
                case "well":
                    return Line(fate.answer, delay=0.1)
                case kind if not isinstance(messages[-1], ToolMessage):
                    names = TOOLS if kind == "part_of_data" else TOOLS[:1]
                    return Line(calls=[(name, {"about": fate.topic}) for name in names])
                case "partial":
                    return Line(f"{fate.answer} {CAVEAT}" if self.scene.streamed else fate.answer)
                case _:
                    return Line(fate.answer)

        return line


@dataclass(frozen=True)
class _Peer:
    """An agent that may end in a way no scripted model can: by a failure of its own."""

    stage: Stage
    inner: Agent

    @property
    def card(self) -> AgentCard:
        return self.inner.card

    @property
    def time_budget(self) -> float | None:
        return self.inner.time_budget

    async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
        fate = self.stage.fate(call.agent)
        reason = PEERS.get(fate.kind)
        if reason is None or WHOSE.get() == "neighbour":
            return await self.inner.run(call, ctx)
        return Failure(
            call_id=call.call_id,
            agent=call.agent,
            axis="invocation",
            reason=reason,
            detail=fate.raw,
        )


class _Log(logging.Handler):
    def __init__(self, lines: list[str]):
        super().__init__(logging.DEBUG)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record))


async def play(stage: Stage, kit: SmallKit, on: Scene) -> Witness:
    """One scene, one turn, in a session of its own; a neighbour asks at the same moment."""
    stage.scene = on
    stage.heard.said.clear()
    stage.logged.clear()
    session = Session(id=f"s{on.seed}", principal=ALICE.principal)
    with stage.listening():
        token = WHOSE.set("neighbour")
        beside = run_turn(
            f"how is my {strangers.said_by(on)}?", strangers.neighbour(on), kit, cap=1
        )
        WHOSE.reset(token)
        reply = await run_turn(on.message, session, kit, cap=on.cap)
        await beside
    return Witness(
        reply,
        tuple(stage.heard.said.get("", ())),
        tuple(stage.logged),
        kit.store.turn(reply.turn_id, OPERATOR),
    )


def as_asked(planned: Scene, reply: Reply) -> Scene:
    """The scene as a model that routes for itself made it: only those it asked, in its order."""
    ran = [outcome.agent for outcome in reply.outcomes]
    asked = [*ran, *(agent for agent in reply.routing.dropped if agent not in ran)]
    fates = {fate.agent: fate for fate in (*planned.fates, *planned.uncalled)}
    called = tuple(fates.pop(agent) for agent in dict.fromkeys(asked))
    count = min(reply.routing.reported_intents, len(called) + len(fates))
    return replace(
        planned,
        fates=called,
        uncalled=tuple(fates.values()),
        count=count,
        cap=len(ran),
        composer="offline stand-in",
    )


def sweep(
    seeds: range,
    lead_model: BaseChatModel | None = None,
    scenes: Callable[[int], Scene] = scene,
) -> Tally:
    """Plays the scenes of these seeds on the virtual clock, and judges each reply."""

    async def all_of_them(path: Path) -> Tally:
        tally = Tally()
        stage = Stage(scenes(seeds[0]), lead_model, str(path))
        kit = stage.kit()
        for seed in seeds:
            planned = (
                scenes(seed) if lead_model is None else replace(scenes(seed), language="en")
            )  # the stand-in reads English
            seen = await play(stage, kit, planned)
            tally.add(planned if lead_model is None else as_asked(planned, seen.reply), seen)
        kit.store.close()
        tally.planted += stage.planted
        tally.look_into(rows_of(path))
        return tally

    with tempfile.TemporaryDirectory() as folder:
        return run_virtual(all_of_them(Path(folder) / "chaos.db"))


def rows_of(path: Path) -> list[tuple[object, ...]]:
    """Every row of every table of a store's file, a turn's log with its session."""
    with open_for_reading(path) as db:
        tables = [
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        rows = [
            row for table in {*tables} - {"logs"} for row in db.execute(f"SELECT * FROM {table}")
        ]
        rows += db.execute(
            "SELECT sqlar_uncompress(log, size), session_id FROM logs LEFT JOIN turns USING (number)"
        )
    db.close()
    return rows
