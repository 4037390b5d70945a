"""An entry for Streamlit: the app with talkative tools, each of which tells its progress for some
seconds before it begins."""

import asyncio
import runpy
from pathlib import Path

import httpx

from kit.core.bodies.speech import Status
from kit.tools import faults
from kit.tools.tool import tool_context

SAID = 12
EVERY = 0.3
STATUSES = ("preparing_results", "thinking_it_through")
SHIFT = {"support": 0.0, "rewards": 0.1, "shop": 0.2}


async def chatter(request: httpx.Request) -> None:
    """Stands where faults are asked for: the one place that every call of every tool passes."""
    context = tool_context()
    await asyncio.sleep(SHIFT[context.agent])
    for number in range(SAID):
        await asyncio.sleep(EVERY)
        context.emit(Status(agent=context.agent, status=STATUSES[number % 2]))


faults.asking_for_faults = chatter
runpy.run_path(str(Path(__file__).parents[2] / "app.py"))
