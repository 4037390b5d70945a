"""A worker that may have little memory, for a process of its own."""

import asyncio
import resource
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kit.service.queued_plans import open_queued_plans
from kit.service.worker import work
from kit.settings import Settings
from kit.tools.skill import SkillResult
from tests.plan_kits import Rows, opened_plans

HUNGRY = "everything there is"
"""A task with these words takes more memory than the process may have."""
ROOM = 1 << 30
"""Bytes that it may take beyond those that it has once it works."""


class Hungry(Rows):
    """A skill that runs in the worker's own process, and takes all the memory there is for some tasks."""

    async def call(
        self, skill: str, arguments: Mapping[str, Any], idempotency_key: str
    ) -> SkillResult:
        if HUNGRY in arguments["task"]:
            bytearray(4 * ROOM)
        return await super().call(skill, arguments, idempotency_key)


def limit_memory() -> None:
    """Bounds the address space of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


async def main(folder: Path, redis: str) -> None:
    async with (
        opened_plans(folder, Hungry(), redis=redis) as kit,
        open_queued_plans(Settings(redis=redis)) as plans,
    ):
        assert plans is not None
        limit_memory()
        await work(kit, plans, 4)


def work_with_little_memory(folder: Path, redis: str) -> None:
    asyncio.run(main(folder, redis))
