"""Plans whose planner is a script and whose executor is a real agent, over a skill service in this process."""

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from langchain_core.language_models.chat_models import BaseChatModel

from kit.compose.deck import load_deck
from kit.compose.parts import PlanSettings
from kit.core.card import AgentCard, PlanExample, Policy
from kit.core.documents.document import Plan
from kit.models.scripted import ScriptedModel
from kit.patterns.plan_execute import PLAN_EXECUTE
from kit.planning.executor import EXECUTOR_TOOLS
from kit.planning.planner import PLANNER_TOOLS
from kit.planning.services import PlanServices
from kit.planning.tools import plan_tools
from kit.runtime.team import bind
from kit.sandbox.boundary import SandboxUnavailable
from kit.sandbox.probe import find_boundary
from kit.settings import HOME
from kit.stores.sqlite import SqliteStore
from kit.tools.mcp.server import McpServer
from kit.tools.mcp.session import McpSession
from kit.tools.skill import SharedSkills, Skills
from kit.tools.skills import SkillClient
from kit.tools.task_memory import TaskMemory
from kit.tools.temp_files import TempFiles
from kit.worlds.outlets.access import Scope
from kit.worlds.outlets.server import skill_server
from kit.worlds.outlets.skill_service import SkillService
from tests.kits import small_deck, stitched
from tests.plan_kits import WHO, PlanKit, planner


def need_boundary() -> None:
    """Skips a test that runs scripts where no sandbox holds; in CI it fails."""
    try:
        find_boundary()
    except SandboxUnavailable as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


@asynccontextmanager
async def in_memory(
    service: SkillService, tenant: str = "acme", **options: Any
) -> AsyncGenerator[SkillClient]:
    """A client of a tenant's skills, over MCP in this process."""
    server = skill_server(service, lambda context: Scope(tenant))
    session = McpSession("skills", McpServer(url="http://skills.example/mcp"), lambda wire: server)
    client = SkillClient(lambda key: session, **options)
    yield client
    await client.aclose()


def a_step(
    task: str, skill: str, shape: Mapping[str, Any], number: int = 1, source: int | None = None
) -> dict[str, Any]:
    """A step as a planner hands it in."""
    spec = {"shape": shape, "reason": "the answer needs it"}
    return {
        "step": number,
        "task": task,
        "skills": [skill],
        "return_spec": spec,
        "input_from_step": source,
    }


def step_kit(
    folder: Path,
    skills: Skills,
    executor: BaseChatModel,
    *drafts: Sequence[Mapping[str, Any]],
    lead: Any = stitched,
    tool_config: Mapping[str, Any] = MappingProxyType({}),
) -> PlanKit:
    """A kit over a store in a folder, whose planner hands in these drafts; without any the
    planner's model is the executor's."""
    store = SqliteStore(str(folder / "kit.db"))
    documents = store.open_documents()
    (folder / "tasks").mkdir(exist_ok=True)
    services = PlanServices(
        documents, SharedSkills(skills), TempFiles(folder / "tasks"), TaskMemory(documents)
    )
    policy = Policy(time_budget_ms=60_000, tokens_in=400_000, max_tool_calls=12)
    budget = Policy(time_budget_ms=300_000)
    cards = [
        AgentCard(
            id="planner", description="Plans.", model="offline", tools=PLANNER_TOOLS, policy=policy
        ),
        AgentCard(
            id="executor",
            description="Executes.",
            model="offline",
            tools=EXECUTOR_TOOLS,
            tool_config=dict(tool_config),
            policy=policy,
        ),
    ]
    deck = small_deck(
        (), cards, planning=PlanSettings(planner="planner", executor="executor", budget=budget)
    )
    model = planner(*drafts)
    models = {
        "orchestrator": ScriptedModel(lead),
        "planner": model if drafts else executor,
        "executor": executor,
    }
    return PlanKit(
        PLAN_EXECUTE.team(deck, lambda own: bind(own, models, plan_tools(services))),
        store,
        services,
        model,
    )


async def output_of(kit: PlanKit, plan: Plan, number: int = 1) -> Any:
    """What a step has left in memory."""
    memory = await kit.services.documents.memory.read(WHO, plan.steps[number - 1].memory_key or "")
    return memory.value if memory else None


@cache
def plan_examples() -> tuple[PlanExample, ...]:
    """The plans that the deck of the outlets has written down for the offline stand-in."""
    planning = load_deck(HOME / "cards" / "outlets").settings.planning
    assert planning is not None
    return planning.examples


class Telling(SkillService):
    """The service, whose details of an outlet have a street of the test's choice."""

    def __init__(self, street: str, **options: Any):
        super().__init__(**options)
        self.street = street

    def call(
        self, scope: Scope, name: str, arguments: Mapping[str, Any], key: str | None = None
    ) -> Any:
        result = super().call(scope, name, arguments, key)
        if name != "outlet_details" or not isinstance(result, dict):
            return result
        return {**result, "outlet": {**result["outlet"], "street": self.street}}
