"""A plan over a response of a megabyte, by the offline stand-in: what its models are shown, and how long it takes."""

import json
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from pydantic import PrivateAttr

from kit.models.offline.model import OfflineModel
from kit.sandbox.probe import find_boundary
from kit.tools.mcp.server import McpServer
from kit.tools.mcp.session import McpSession
from kit.tools.skill import canonical_text, text_size
from kit.tools.skills import SkillClient
from kit.worlds.outlets.server import skill_server
from kit.worlds.outlets.skill_service import SkillService
from studies.plan_kit import ACME, PlanRun, plan_examples, plan_kit, run_task

KIB = 1024
OUTLET = "ou-0001"
TASK = f"Which items on the menu of {OUTLET} are vegetarian, with their prices"


class Reading(NamedTuple):
    """What one call of a model was shown; a list of them is a tidy frame."""

    agent: str
    call: int
    kib: float
    """Its messages, calls of tools and their results among them."""


class MenuRun(NamedTuple):
    """The plan, and what it was about."""

    run: PlanRun
    readings: list[Reading]
    menu: list[dict[str, Any]]
    """Every item, as the data has them."""
    kib: float
    """Of the response."""
    seconds: float
    sandbox_seconds: float
    """Of those, what scripts took, their process's start included."""


class MeteredModel(OfflineModel):
    """The stand-in, which notes how much it is shown."""

    _sizes: list[int] = PrivateAttr(default_factory=list[int])

    @property
    def sizes(self) -> list[int]:
        """Bytes of the messages of each call."""
        return self._sizes

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        self._sizes.append(sum(map(_size, messages)))
        async for chunk in super()._astream(messages, *args, **kwargs):
            yield chunk


def _size(message: BaseMessage) -> int:
    calls = (
        json.dumps([call["args"] for call in message.tool_calls])
        if isinstance(message, AIMessage)
        else ""
    )
    return text_size(f"{message.text}{calls}")


async def play_menu() -> MenuRun:
    """Has the stand-in plan TASK and carry it out, in real time."""
    find_boundary()  # once a process, and not what is measured here
    service = SkillService()
    server = skill_server(service, lambda _: ACME)
    session = McpSession("skills", McpServer(url="http://skills.example/mcp"), lambda _: server)
    client = SkillClient(lambda _: session)
    models = {
        agent: MeteredModel(pace=0.0, think=0.0, plan_examples=plan_examples())
        for agent in ("planner", "executor")
    }
    whole: Any = service.call(ACME, "outlet_menu", {"outlet_id": OUTLET})
    with tempfile.TemporaryDirectory() as folder:
        kit = plan_kit(Path(folder), client, models["planner"], models["executor"])
        began = time.perf_counter()
        run = await run_task(kit, TASK, "menu")
        seconds = time.perf_counter() - began
    await client.aclose()
    scripts = [
        event.duration_ms or 0
        for event in run.events
        if event.event_type == "python_script.executed"
    ]
    readings = [
        Reading(agent, call, size / KIB)
        for agent, model in models.items()
        for call, size in enumerate(model.sizes, start=1)
    ]
    kib = text_size(canonical_text(whole)) / KIB
    return MenuRun(run, readings, whole["items"], kib, seconds, sum(scripts) / 1000)
