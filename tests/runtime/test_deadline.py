"""A deadline ends a block exactly as `asyncio.timeout` does; the kit enters some five of them in a turn."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kit.runtime.budget import Deadline

Within = Callable[[float | None, Awaitable[Any]], Awaitable[Any]]


async def by_asyncio(seconds: float | None, work: Awaitable[Any]) -> Any:
    async with asyncio.timeout(seconds):
        return await work


async def by_deadline(seconds: float | None, work: Awaitable[Any]) -> Any:
    with Deadline(seconds):
        return await work


async def raising(error: BaseException) -> None:
    await asyncio.sleep(1)
    raise error


async def stubborn() -> str:
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(9)
    return "late"


async def nested(within: Within, outer: float, inner: float) -> str:
    """Which of two deadlines went off, and whether the task can wait again."""
    try:
        await within(outer, caught(within(inner, asyncio.sleep(9))))
    except TimeoutError:
        await asyncio.sleep(0)
        return "outer"
    await asyncio.sleep(0)
    return "inner"


async def caught(work: Awaitable[Any]) -> None:
    with contextlib.suppress(TimeoutError):
        await work


async def stopped(within: Within, seconds: float, at: float) -> None:
    task = asyncio.ensure_future(within(seconds, asyncio.sleep(9)))
    await asyncio.sleep(at)
    task.cancel()
    await task


CASES: dict[str, Callable[[Within], Awaitable[Any]]] = {
    "in time": lambda within: within(5, asyncio.sleep(1, "done")),
    "too late": lambda within: within(1, asyncio.sleep(9)),
    "its own time-out": lambda within: within(5, raising(TimeoutError("another"))),
    "it will not stop": lambda within: within(1, stubborn()),
    "the inner one": lambda within: nested(within, 5, 1),
    "both at once": lambda within: nested(within, 1, 1),
    "stopped from outside": lambda within: stopped(within, 5, 1),
    "stopped in the moment it is over": lambda within: stopped(within, 1, 1),
}


async def end_of(case: str, within: Within) -> tuple[Any, ...]:
    task = asyncio.ensure_future(CASES[case](within))
    began = asyncio.get_running_loop().time()
    (result,) = await asyncio.gather(task, return_exceptions=True)
    ended = asyncio.get_running_loop().time()
    return (
        type(result),
        result if isinstance(result, str) else "",
        round(ended - began, 6),
        task.cancelling(),
    )


@pytest.mark.parametrize("case", CASES)
async def test_a_deadline_ends_as_the_timeout_of_asyncio(case: str):
    assert await end_of(case, by_deadline) == await end_of(case, by_asyncio)


async def test_it_says_which_time_was_over_and_that_it_was_its_own():
    with pytest.raises(TimeoutError, match=r"no answer within 0\.5 s"), Deadline(0.5) as deadline:
        await asyncio.sleep(1)
    assert deadline.expired
    with pytest.raises(TimeoutError, match="another"), Deadline(5) as deadline:
        await raising(TimeoutError("another"))
    assert not deadline.expired
