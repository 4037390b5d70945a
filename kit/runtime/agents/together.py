"""Awaits several things at the same time and leaves none of them behind."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


async def together(work: Sequence[Awaitable[T]]) -> list[T]:
    """Returns the results in the order of the work; raises the first exception by that order, once
    all have ended.

    Whoever is cancelled here cancels them all, and goes on when they have ended. `asyncio.gather`
    does the same with one step of the loop more.
    """
    if len(work) < 2:
        return [await piece for piece in work]
    loop = asyncio.get_running_loop()
    open_work = len(work)
    all_ended: asyncio.Future[None] = loop.create_future()

    def end() -> None:
        nonlocal open_work
        open_work -= 1
        if not open_work and not all_ended.done():
            all_ended.set_result(None)

    tasks = [loop.create_task(_run(piece, end)) for piece in work]
    try:
        await all_ended
    except asyncio.CancelledError:
        await _stop(tasks)
        raise
    finally:
        for task in tasks:
            # Asking for the exception marks it as seen: asyncio complains of every other one.
            if not task.cancelled():
                task.exception()
    return [task.result() for task in tasks]


async def _run(piece: Awaitable[T], end: Callable[[], None]) -> T:
    try:
        return await piece
    finally:
        end()


async def _stop(tasks: Sequence["asyncio.Task[T]"]) -> None:
    """Returns when all have ended, however often that is interrupted; each interruption cancels them once more."""
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        try:
            await asyncio.wait(running)
        except asyncio.CancelledError:
            continue
