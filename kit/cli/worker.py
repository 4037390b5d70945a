"""`kit worker`: runs plans that `kit serve` takes, over the Redis and the store that both share."""

import asyncio
import gc
import signal
import sys
from argparse import Namespace
from typing import Any

DRAIN = 10
"""Seconds that running plans get once the worker is told to end; another worker takes up the rest."""


def add(commands: Any) -> None:
    """Adds the command to a parser's."""
    worker = commands.add_parser("worker", help="run the plans that `serve` takes, over KIT_REDIS")
    worker.add_argument(
        "--at-once", type=int, default=8, help="plans that it runs at once (default: 8)"
    )
    worker.set_defaults(run=_work)


def _work(arguments: Namespace) -> int:
    asyncio.run(_work_until_told(arguments.at_once))
    return 0


async def _work_until_told(at_once: int) -> None:
    from kit.bench.shadow import shadow_judges
    from kit.core.errors import SettingsError
    from kit.service.queued_plans import open_queued_plans
    from kit.service.worker import work
    from kit.settings import Settings
    from kit.wire import open_kit

    settings = Settings.read()
    told_to_end = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told_to_end.set)
    async with (
        open_kit(settings) as kit,
        shadow_judges(kit),
        open_queued_plans(settings) as plans,
    ):
        if plans is None:
            raise SettingsError(
                "a worker needs a queue: set KIT_REDIS, such as redis://127.0.0.1:6379/0"
            )
        gc.freeze()
        print("working", file=sys.stderr, flush=True)
        working = asyncio.create_task(work(kit, plans, at_once))
        ending = asyncio.create_task(told_to_end.wait())
        await asyncio.wait((working, ending), return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        working.cancel()
        await asyncio.wait((working,))
        await kit.turns.drain(DRAIN)
