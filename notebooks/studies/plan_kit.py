"""What studies of plans run them on: a planner and an executor, a store in memory, the outlets'
skills in this process."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.language_models.chat_models import BaseChatModel

from kit.bench.routing import BENCH_USER, RoutingKit
from kit.compose.deck import load_deck
from kit.compose.parts import PlanSettings
from kit.core.bodies.call import ModelStarted
from kit.core.card import AgentCard, PlanExample, Policy
from kit.core.documents.document import AgentEvent, Plan
from kit.models.scripted import Line, ScriptedModel
from kit.patterns.plan_execute import PLAN_EXECUTE, services_of
from kit.planning.executor import EXECUTOR_TOOLS
from kit.planning.plan import complete_steps
from kit.planning.planner import PLANNER_TOOLS
from kit.planning.services import PlanServices
from kit.planning.tools import plan_tools
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from kit.settings import HOME
from kit.stores.documents.protocol import EventFilter
from kit.stores.sqlite import SqliteStore
from kit.tools.skill import (
    FIND,
    LOAD,
    Fence,
    SharedSkills,
    SkillFault,
    SkillManifest,
    SkillResult,
    Skills,
    SkillSummary,
    canonical_text,
    text_size,
)
from kit.tools.task_memory import TaskMemory
from kit.tools.temp_files import TempFiles
from kit.tools.tool import Toolbox
from kit.worlds.outlets.access import Scope
from kit.worlds.outlets.manifest import read_manifests
from kit.worlds.outlets.skill_service import Fault, SkillFailed, SkillService
from studies.study_deck import study_deck, study_session

ACME = Scope("acme")
SKILL_SECONDS = 30.0
"""What a call of a skill may take."""
LEASE = 3600.0
"""Seconds that a plan is held: nobody else is there to take it up."""
BUDGET = Policy(time_budget_ms=600_000)
"""Of a whole plan."""
ROLE = Policy(time_budget_ms=90_000, tokens_in=400_000, max_tool_calls=12)
"""Of one run of a planner or an executor."""
MOST_EVENTS = 200_000


class PlanRun(NamedTuple):
    """A plan that was run to its end, with what it left."""

    plan: Plan
    events: list[AgentEvent]
    outputs: Mapping[int, Any]
    """Number of a complete step -> its output."""
    model_calls: int


class _Lookups(SkillService):
    """The service for plans that act on nothing: it looks the same thing up once in a process."""

    _results: dict[str, Any] = {}

    def call(
        self, scope: Scope, name: str, arguments: Mapping[str, Any], key: str | None = None
    ) -> Any:
        question = f"{scope.tenant} {name} {canonical_text(dict(arguments))}"
        if question not in self._results:
            self._results[question] = super().call(scope, name, arguments, key)
        return self._results[question]


class OutletSkills:
    """The skills of one tenant, called without a protocol between; what goes wrong is the fault
    that a client makes of it."""

    def __init__(self, faults: Mapping[str, Sequence[Fault]] | None = None):
        """`faults`: skill -> what goes wrong at its first calls, in their order."""
        self._service = _Lookups(_manifests(), faults=faults)

    async def find(self, query: str) -> tuple[SkillSummary, ...]:
        result: Any = self._service.call(ACME, FIND, {"query": query})
        return tuple(SkillSummary.model_validate(one) for one in result["skills"])

    async def load(self, name: str) -> SkillManifest | SkillFault:
        result = self._service.call(ACME, LOAD, {"skill_name": name})
        return (
            SkillManifest.model_validate(result)
            if isinstance(result, dict)
            else _refusal(name, result)
        )

    @asynccontextmanager
    async def step(self, allowed: Collection[str], fence: Fence) -> AsyncGenerator["OutletSkills"]:
        yield self

    async def call(
        self, skill: str, arguments: Mapping[str, Any], idempotency_key: str
    ) -> SkillResult | SkillFault:
        size = text_size(canonical_text(dict(arguments)))
        try:
            async with asyncio.timeout(SKILL_SECONDS):
                result = await self._service.serve(ACME, skill, arguments, idempotency_key)
        except TimeoutError:
            ms = round(SKILL_SECONDS * 1000)
            return SkillFault(
                skill=skill,
                reason="timeout",
                detail="no answer",
                input_size_bytes=size,
                duration_ms=ms,
            )
        except SkillFailed as error:
            return SkillFault(
                skill=skill, reason="failed", detail=str(error), input_size_bytes=size
            )
        if not isinstance(result, dict):
            return _refusal(skill, result)
        text = canonical_text(result)
        sizes = {"size_bytes": text_size(text), "input_size_bytes": size, "duration_ms": 0}
        return SkillResult(skill=skill, content=result, text=text, **sizes)


def _refusal(skill: str, refusal: Any) -> SkillFault:
    return SkillFault(skill=skill, reason=refusal.type, detail=refusal.message)


@cache
def _manifests() -> Any:
    return read_manifests()


def plan_examples() -> tuple[PlanExample, ...]:
    """The plans that the deck of the outlets has written down for the offline stand-in."""
    planning = load_deck(HOME / "cards" / "outlets").settings.planning
    assert planning is not None
    return planning.examples


def plan_kit(
    folder: Path,
    skills: Skills,
    planner: BaseChatModel,
    executor: BaseChatModel,
    tools: Mapping[str, Any] | None = None,
) -> RoutingKit:
    """A kit that plans with one model and executes with another; its lead says "Done.".

    `folder`: for the files of tasks. `tools`: tool id -> a function of the services that makes
    another in its place. Times are those of the running loop.
    """
    store = SqliteStore(":memory:")
    documents = store.open_documents()

    def clock() -> float:
        return asyncio.get_running_loop().time()

    services = PlanServices(
        documents,
        SharedSkills(skills),
        TempFiles(folder),
        TaskMemory(documents, clock),
        clock,
        LEASE,
    )
    own: Toolbox = {
        **plan_tools(services),
        **{name: make(services) for name, make in (tools or {}).items()},
    }
    roles = {"planner": PLANNER_TOOLS, "executor": EXECUTOR_TOOLS}
    cards = [
        AgentCard(
            id=role, description=f"The {role} of plans.", model="offline", tools=ids, policy=ROLE
        )
        for role, ids in roles.items()
    ]
    settings = PlanSettings(planner="planner", executor="executor", budget=BUDGET)
    deck = study_deck(cards, planning=settings, guards=False)
    models = {
        "orchestrator": ScriptedModel(lambda _: Line("Done.")),
        "planner": planner,
        "executor": executor,
    }
    team = PLAN_EXECUTE.team(deck, lambda deck: bind(deck, models, own))
    return RoutingKit(team, store, pattern=PLAN_EXECUTE)


async def run_task(kit: RoutingKit, task: str, case: str) -> PlanRun:
    """Plans a task and runs it to its end, in a conversation of its own."""
    reply = await run_turn(task, study_session(case), kit)
    services = services_of(kit.team.agents)
    plan = await services.documents.plans.read(BENCH_USER, f"plan_{reply.turn_id}")
    assert plan is not None
    by = EventFilter(tenant_id=BENCH_USER.tenant_id, plan_id=plan.plan_id)
    events = await services.documents.events.query(by, MOST_EVENTS)
    outputs: dict[int, Any] = {}
    for step in complete_steps(plan):
        memory = await services.memory.read(BENCH_USER, step.memory_key or "")
        outputs[step.step_index] = memory and memory.value
    calls = sum(isinstance(event.body, ModelStarted) for event in reply.events)
    return PlanRun(plan, events, outputs, calls)
