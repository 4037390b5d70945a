"""Plans for tests: a planner that hands in given drafts, executors that do given things, an own store."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from kit import Kit, open_kit
from kit.compose.deck import Deck
from kit.compose.parts import Block, DeckSettings, PlanSettings
from kit.core.card import AgentCard, Policy
from kit.core.documents.document import AgentEvent, Plan
from kit.core.outcome import AgentCall, Answer, Outcome
from kit.models.scripted import Line, Script, ScriptedModel
from kit.patterns.plan_execute import PLAN_EXECUTE
from kit.planning.executor import EXECUTOR_TOOLS
from kit.planning.planner import PLANNER_TOOLS
from kit.planning.record import LEASE
from kit.planning.scope import StepScope, step_scope
from kit.planning.services import PlanServices
from kit.planning.tools import PLAN_TOOLS, plan_tools
from kit.runtime.context import RunContext
from kit.runtime.handle import Reply
from kit.runtime.pattern import Pattern
from kit.runtime.team import Team, bind
from kit.sinks.recorder import Recorder
from kit.stores.documents.protocol import EventFilter, EventStore, PlanStore
from kit.stores.sqlite import SqliteStore
from kit.tools.skill import (
    Fence,
    SharedSkills,
    SkillFault,
    SkillManifest,
    SkillResult,
    Skills,
    SkillSummary,
    canonical_text,
)
from kit.tools.task_memory import TaskMemory
from kit.tools.temp_files import TempFiles
from kit.tools.tool import Toolbox
from kit.tools.tool_factory import ToolSetup, tool_factory
from tests.kits import ALICE, OFFLINE, small_deck, stitched

SHAPE = {"rows": "array<string>"}
OUTPUT = {
    "type": "object",
    "properties": {"rows": {"type": "array", "items": {"type": "string"}}},
    "required": ["rows"],
}
Doing = Callable[[StepScope, PlanServices], Awaitable[str | None]]
"""What an executor does in a step; what it says in the end."""


def manifest(name: str, **fields: Any) -> SkillManifest:
    """A skill that returns rows."""
    fixed: dict[str, Any] = {
        "capabilities": (),
        "limitations": (),
        "execution_mode": "sync",
        "endpoint": f"skills/{name}",
    }
    fixed |= {
        "input_schema": {"type": "object"},
        "output_schema": OUTPUT,
        "description": f"Gives {name}.",
    }
    return SkillManifest(id=name, **{**fixed, **fields})


def row_result(skill: str, row: str) -> SkillResult:
    """What a skill that returns rows gives: one row."""
    content = {"rows": [row]}
    text = canonical_text(content)
    return SkillResult(
        skill=skill,
        content=content,
        text=text,
        size_bytes=len(text),
        input_size_bytes=0,
        duration_ms=0,
    )


def draft(
    *tasks: str, first: int = 1, skill: str = "rows", chain: bool = False
) -> list[dict[str, Any]]:
    """Steps as a planner hands them in; in a chain each works on the output of the one before it."""
    return [
        {
            "step": number,
            "task": task,
            "skills": [skill],
            "return_spec": {"shape": SHAPE, "reason": "the answer needs it"},
            "input_from_step": number - 1 if chain and number > 1 else None,
        }
        for number, task in enumerate(tasks, first)
    ]


Handed = Sequence[Mapping[str, Any]] | Mapping[str, Any] | str
"""Steps that a planner hands in; all that it hands in; why there is no plan."""


def planner(*drafts: Handed) -> ScriptedModel:
    """A planner's model that loads the skills of a draft and hands it in, one draft a run; a text says why there is none."""
    lines: list[Line] = []
    for draft in drafts:
        if isinstance(draft, str):
            names, plan = ["rows"], {"infeasible": draft}
        else:
            plan = dict(draft) if isinstance(draft, Mapping) else {"steps": list(draft)}
            names = sorted({skill for step in plan["steps"] for skill in step["skills"]})
        lines.append(Line(calls=[("load_skill", {"skill_name": name}) for name in names]))
        lines += [Line(calls=[("submit_plan", plan)]), Line("Handed in.")]
    return ScriptedModel(*lines)


def plans_what_is_asked(messages: list[BaseMessage]) -> Line:
    """A planner's model that makes two steps of any task, whoever asks; the tasks repeat its words."""
    task = (
        json.loads(str(messages[-1].content).partition("\n\n")[2])["original_task"]
        if messages[-1].type == "human"
        else ""
    )
    if task:
        return Line(calls=[("load_skill", {"skill_name": "rows"})])
    if isinstance(messages[-2], AIMessage) and messages[-2].tool_calls[0]["name"] == "load_skill":
        asked = next(
            str(message.content) for message in messages if isinstance(message, HumanMessage)
        )
        words = json.loads(asked.partition("\n\n")[2])["original_task"]
        return Line(calls=[("submit_plan", {"steps": draft(f"find {words}", f"rank {words}")})])
    return Line("Handed in.")


def keeps_briefs(briefs: list[dict[str, Any]]) -> Script:
    """A planner's model that makes two steps of any task, and keeps what it was told of each."""

    def plan(messages: list[BaseMessage]) -> Line:
        if messages[-1].type == "human":
            briefs.append(json.loads(str(messages[-1].content).partition("\n\n")[2]))
        return plans_what_is_asked(messages)

    return plan


@dataclass(frozen=True)
class Executor:
    """An executor without a model."""

    card: AgentCard
    services: PlanServices
    doing: Doing
    time_budget: float | None = 8.0

    async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
        scope = step_scope()
        assert scope is not None
        return Answer(
            call_id=call.call_id,
            agent=call.agent,
            text=await self.doing(scope, self.services) or "Done.",
        )


@dataclass
class PlanKit:
    """What run_turn needs to run plans."""

    team: Team
    store: SqliteStore
    services: PlanServices
    planner: ScriptedModel
    recorder: Recorder = field(default_factory=Recorder)
    cassette: None = None
    pattern: Pattern = PLAN_EXECUTE
    today: str = "2026-11-01"


async def gives_rows(scope: StepScope, services: PlanServices) -> str | None:
    """Writes one row that names the step."""
    assert scope.task.step_index is not None
    await services.memory.write(
        scope.task, "rows", {"rows": [scope.step.task]}, scope.step.return_spec["shape"]
    )
    return None


class Described:
    """Skills that are described, and called by nobody."""

    def __init__(self, *manifests: SkillManifest):
        self.manifests = {one.id: one for one in manifests}

    async def find(self, query: str) -> tuple[SkillSummary, ...]:
        return tuple(
            SkillSummary(skill_name=one.id, description=one.description)
            for one in self.manifests.values()
        )

    async def load(self, name: str) -> SkillManifest:
        return self.manifests[name]

    @asynccontextmanager
    async def step(self, allowed: Collection[str], fence: Fence) -> AsyncGenerator[Any]:
        yield self

    async def call(
        self, skill: str, arguments: Mapping[str, Any], idempotency_key: str
    ) -> SkillResult | SkillFault:
        raise AssertionError("no executor here calls a skill")


def calls_and_writes(messages: list[BaseMessage]) -> Line:
    """An executor's model that calls the skill once and hands in the rows it gave; it ends where it got none."""
    last = messages[-1]
    if not isinstance(last, ToolMessage):
        return Line(
            calls=[("call_skill", {"skill": "rows", "arguments": {"task": _task(messages)}})]
        )
    rows = last.status != "error" and '{"rows":' in str(last.content)
    if not rows:
        return Line("The end.")
    data = json.loads(str(last.content)[str(last.content).index('{"rows":') :])
    return Line(calls=[("write_memory", {"key": "rows", "data": data})])


def _task(messages: list[BaseMessage]) -> str:
    begins = "Do this step of a plan: "
    # What was said before in the session comes first.
    humans = [str(message.content) for message in messages if isinstance(message, HumanMessage)]
    query = next(text for text in humans if text.startswith(begins))
    return query.splitlines()[0].removeprefix(begins)


class Rows(Described):
    """A skill that gives one row, and keeps the tasks and the keys that it was called with."""

    def __init__(self, **fields: Any):
        super().__init__(manifest("rows", **fields))
        self.tasks: list[str] = []
        self.keys: list[str] = []

    async def call(
        self, skill: str, arguments: Mapping[str, Any], idempotency_key: str
    ) -> SkillResult:
        self.tasks.append(arguments["task"])
        self.keys.append(idempotency_key)
        return row_result(skill, arguments["task"])


class Waits(Rows):
    """A skill that waits while it is slow, until it may end, and says when it is at work."""

    def __init__(self) -> None:
        super().__init__(idempotent=True)
        self.is_slow = True
        self.at_work = asyncio.Event()
        self.may_end = asyncio.Event()

    async def call(
        self, skill: str, arguments: Mapping[str, Any], idempotency_key: str
    ) -> SkillResult:
        self.at_work.set()
        if self.is_slow:
            await self.may_end.wait()
        return await super().call(skill, arguments, idempotency_key)


@asynccontextmanager
async def opened_plans(
    folder: Path,
    rows: Rows,
    *,
    lead: Script = stitched,
    planner: Script = plans_what_is_asked,
    executor: Script = calls_and_writes,
    blocks: Sequence[Block] = (),
    flags: Mapping[str, bool] = MappingProxyType({}),
    redis: str | None = None,
    store: str = "",
    recall: int = 0,
    documents: str | None = None,
    lease: float = LEASE,
    faults: bool = False,
    **settings: Any,
) -> AsyncGenerator[Kit]:
    """The kit of a deck that plans over rows, as a process opens it. `blocks` stand in the planner's prompt;
    `redis` is the address that processes share, `store` a place other than the folder's file, `documents` one for
    documents alone."""
    own_blocks = tuple(block.id for block in blocks)
    cards = [
        AgentCard(id="lead", description="Leads.", model="offline", sub_agents=("desk",)),
        AgentCard(id="desk", description="Answers.", model="offline"),
        AgentCard(
            id="planner",
            description="Plans.",
            model="offline",
            tools=PLANNER_TOOLS,
            prompt_blocks=own_blocks,
        ),
        AgentCard(id="executor", description="Executes.", model="offline", tools=EXECUTOR_TOOLS),
    ]
    rules = Block(id="rules", category="safety", owner="platform", text="Never lie.")
    roles = PlanSettings(planner="planner", executor="executor", recall=recall)
    of_deck = DeckSettings(
        orchestrator="lead", required_blocks=("rules",), planning=roles, **settings
    )
    files = TempFiles(folder / "tasks")
    (folder / "tasks").mkdir(exist_ok=True)

    @tool_factory(*PLAN_TOOLS)
    @asynccontextmanager
    async def tools(setup: ToolSetup) -> AsyncGenerator[Toolbox]:
        own = setup.documents()
        memory = TaskMemory(own)
        yield plan_tools(PlanServices(own, SharedSkills(rows), files, memory, lease=lease))

    deck = Deck.of(cards, [rules, *blocks], settings=of_deck, flags=flags, known=PLAN_TOOLS)
    scripts = {"lead": lead, "desk": "Yes.", "planner": planner, "executor": executor}
    models = {name: ScriptedModel(script) for name, script in scripts.items()}
    own = OFFLINE.with_(store=store or str(folder / "kit.db"), redis=redis, documents=documents)
    async with open_kit(
        own, deck=deck, models=models, tools=[tools], pattern="plan_execute", faults=faults
    ) as kit:
        yield kit


def plan_kit(
    folder: Path,
    *drafts: Handed,
    doing: Doing | None = gives_rows,
    skills: Skills | None = None,
    budget: Policy | None = None,
    lease: float = LEASE,
    name: str = "kit.db",
    plans: Callable[[PlanStore], Any] = lambda own: own,
    events: Callable[[EventStore], Any] = lambda own: own,
    clock: Callable[[], float] = time.time,
    steps_at_once: int = 5,
) -> PlanKit:
    """A kit over a store in a folder, whose planner hands in these drafts, or two steps for every task.

    `plans` and `events` stand in front of the store's own.

    Its executor has no model and does what `doing` says; where that is None it is a real one, which calls the skill.
    """
    store = SqliteStore(str(folder / name))
    own = store.open_documents()
    documents = replace(own, plans=plans(own.plans), events=events(own.events))
    (folder / "tasks").mkdir(exist_ok=True)
    memory, files = TaskMemory(documents), TempFiles(folder / "tasks")
    services = PlanServices(
        documents,
        SharedSkills(skills or Described(manifest("rows"))),
        files,
        memory,
        clock=clock,
        lease=lease,
    )
    settings = PlanSettings(
        planner="planner",
        executor="executor",
        budget=budget or Policy(time_budget_ms=60_000),
        steps_at_once=steps_at_once,
    )
    tools = EXECUTOR_TOOLS if doing is None else ()
    cards = [
        AgentCard(id="planner", description="Plans.", model="offline", tools=PLANNER_TOOLS),
        AgentCard(id="executor", description="Executes.", model="offline", tools=tools),
    ]
    model = planner(*drafts) if drafts else ScriptedModel(plans_what_is_asked)
    deck = small_deck((), cards, planning=settings)
    models = {
        "orchestrator": ScriptedModel(stitched),
        "planner": model,
        "executor": ScriptedModel(calls_and_writes),
    }
    team = PLAN_EXECUTE.team(deck, lambda own: bind(own, models, plan_tools(services)))
    if doing is not None:
        team = team.with_agents(
            {"executor": Executor(team.agents["executor"].card, services, doing)}
        )
    return PlanKit(team, store, services, model)


WHO = ALICE.principal


async def read_plan(kit: PlanKit, plan_id: str) -> Plan:
    """A plan as it is stored."""
    plan = await kit.services.documents.plans.read(WHO, plan_id)
    assert plan is not None
    return plan


async def plan_of(kit: PlanKit, reply: Reply) -> Plan:
    """The plan that a turn has made, as it is stored."""
    return await read_plan(kit, f"plan_{reply.turn_id}")


async def events_of(kit: PlanKit, kind: str | None = None) -> list[AgentEvent]:
    """What the log has, of one kind or all."""
    return await kit.services.documents.events.query(
        EventFilter(tenant_id=WHO.tenant_id, event_type=kind)
    )
