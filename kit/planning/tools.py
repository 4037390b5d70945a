"""The tools of the planner's and the executor's card, over the skill service of a deck or of the environment."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from kit.core.errors import BindError
from kit.planning.executor import EXECUTOR_TOOLS, executor_tools
from kit.planning.planner import PLANNER_TOOLS, planner_tools
from kit.planning.services import PlanServices
from kit.tools.exec_python import boundary_or_fault
from kit.tools.mcp.server import McpServer
from kit.tools.skill import SharedSkills, SkillService
from kit.tools.skills import HttpSkillService, skill_client
from kit.tools.task_memory import TaskMemory
from kit.tools.temp_files import open_temp_files
from kit.tools.tool import Toolbox
from kit.tools.tool_factory import ToolSetup, tool_factory

PLAN_TOOLS = (*PLANNER_TOOLS, *EXECUTOR_TOOLS)
"""Their ids."""


def plan_tools(services: PlanServices) -> Toolbox:
    """Makes them, by their ids."""
    return {**planner_tools(services), **executor_tools(services)}


@tool_factory(*PLAN_TOOLS)
@asynccontextmanager
async def TOOLS(setup: ToolSetup) -> AsyncGenerator[Toolbox]:
    """What deck.yaml names as `kit.planning.tools:TOOLS`. Raises BindError where nobody says which
    skill service to call."""
    if setup.skill_service is None:
        raise BindError(
            "plans need a skill service: name one under `skill_service:` in deck.yaml, or set SKILL_SERVICE_URL"
        )
    # Once in a process, and on a thread: it tries to break out, which takes a moment.
    await asyncio.to_thread(boundary_or_fault)
    files = open_temp_files()
    documents = setup.documents()
    days = setup.settings.retention_days
    files.sweep(time.time())
    memory = TaskMemory(
        documents, setup.clock, setup.bus, setup.embedder, seconds=days and days * 86_400
    )
    async with _skills(setup, setup.skill_service) as skills:
        yield plan_tools(PlanServices(documents, skills, files, memory, setup.clock))


@asynccontextmanager
async def _skills(setup: ToolSetup, service: McpServer) -> AsyncGenerator[SkillService]:
    """Opens the skill service: one that is run as a command serves all requests of a kit."""
    if service.url:
        yield HttpSkillService(service, setup.folder, setup.server_environment)
        return
    client = skill_client(service, setup.folder, setup.server_environment)
    try:
        yield SharedSkills(client)
    finally:
        await client.aclose()
