"""Plays scenes: one small kit, whose agents look up their fate in the scene that is on."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool

from kit.core.card import AgentCard
from kit.core.context import Session
from kit.core.outcome import AgentCall, Failure, Outcome, Reason
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.clock import run_virtual
from kit.runtime.context import Agent, RunContext
from kit.runtime.turn import Reply, run_turn
from kit.tools.enricher import CAVEAT, UNAVAILABLE
from kit.tools.tool import ToolResult, tool_context
from tests.chaos.composer import lead
from tests.chaos.judge import Tally
from tests.chaos.scene import AGENTS, Fate, Scene, scene
from tests.kits import ALICE, SmallKit, small_kit

DATA: dict[str, Reason] = {"no_data": "unavailable", "foreign_principal": "principal_mismatch"}
PEERS: dict[str, Reason] = {"refuses": "refusal", "over_budget": "budget", "unsure": "low_confidence"}


@dataclass
class Stage:
    """Holds the scene that is on."""

    scene: Scene
    lead_model: BaseChatModel | None = None

    def fate(self, agent: str) -> Fate:
        return next(fate for fate in self.scene.fates if fate.agent == agent)

    def kit(self) -> SmallKit:
        tools = {name: _tool(name, self) for name in ("lookup", "second")}
        cards = [
            AgentCard(id=agent, description=f"Answers what people ask about their {topic}.", model="offline", tools=tuple(tools))
            for agent, topic in AGENTS.items()
        ]
        models = {agent: ScriptedModel(self._worker(agent)) for agent in AGENTS}
        orchestrator = self.lead_model or ScriptedModel(lambda seen: lead(self.scene, seen))
        kit = small_kit(orchestrator, models, tools, cards=cards)
        peers: dict[str, Agent] = {a: _Peer(self, kit.team.agents[a]) for a in AGENTS}
        kit.team = kit.team.with_agents(peers)
        return kit

    def _worker(self, agent: str) -> Any:
        def line(messages: list[BaseMessage]) -> Line:
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
                    names = ("lookup", "second") if kind == "part_of_data" else ("lookup",)
                    return Line(calls=[(name, {}) for name in names])
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
        if reason is None:
            return await self.inner.run(call, ctx)
        return Failure(call_id=call.call_id, agent=call.agent, axis="invocation", reason=reason, detail=fate.raw)


def _tool(name: str, stage: Stage) -> BaseTool:
    async def call() -> tuple[str, ToolResult]:
        fate = stage.fate(tool_context().agent)
        if fate.kind == "tool_raises":
            raise ValueError(fate.raw)
        fault = DATA.get(fate.kind)
        if fault is not None or (fate.kind == "part_of_data" and name == "second"):
            result = ToolResult(text=UNAVAILABLE, fault=fault or "unavailable", detail=fate.raw)
        else:
            result = ToolResult(text=fate.answer, caveat=CAVEAT if fate.kind == "partial" else None)
        return result.text, result

    schema = {"type": "object", "title": name, "properties": {}}
    return StructuredTool(
        name=name, description=f"The {name}.", args_schema=schema, coroutine=call, response_format="content_and_artifact"
    )


async def play(stage: Stage, kit: SmallKit, on: Scene) -> Reply:
    """One scene, one turn, in a session of its own."""
    stage.scene = on
    message = " and ".join(f"what about my {fate.topic}" for fate in on.fates) + "?"
    session = Session(id=f"s{on.seed}", principal=ALICE.principal)
    return await run_turn(message, session, kit, cap=on.cap)


def as_asked(planned: Scene, reply: Reply) -> Scene:
    """The scene as a model that routes for itself made it: only those it asked, in its order."""
    ran = [outcome.agent for outcome in reply.outcomes]
    asked = [*ran, *(agent for agent in reply.routing.dropped if agent not in ran)]
    fates = {fate.agent: fate for fate in planned.fates}
    return replace(planned, fates=tuple(fates[agent] for agent in asked), cap=len(ran), composer="offline stand-in")


def sweep(seeds: range, lead_model: BaseChatModel | None = None) -> Tally:
    """Plays the scenes of these seeds on the virtual clock, and judges each reply."""

    async def all_of_them() -> Tally:
        tally = Tally()
        stage = Stage(scene(seeds[0]), lead_model)
        kit = stage.kit()
        for seed in seeds:
            reply = await play(stage, kit, scene(seed))
            tally.add(scene(seed) if lead_model is None else as_asked(scene(seed), reply), reply)
        kit.store.close()
        return tally

    return run_virtual(all_of_them())
