"""Work that is awaited together: nothing is left behind, whatever becomes of a part."""

import asyncio
import gc
from typing import Any

import pytest

from kit.runtime.clock import run_virtual
from kit.runtime.dispatch import together


async def after(seconds: float, result: Any, ended: list[Any]) -> Any:
    """Ends after its time, with the result or by raising it."""
    await asyncio.sleep(seconds)
    ended.append(result)
    if isinstance(result, BaseException):
        raise result
    return result


def test_the_first_exception_is_raised_once_all_have_ended():
    ended: list[Any] = []
    complaints: list[Any] = []
    results = [ValueError("first"), "third", OSError("another"), asyncio.CancelledError(), "fine"]

    async def play() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        with pytest.raises(ValueError, match="first"):
            await together([after(n, result, ended) for n, result in enumerate(results)])

    run_virtual(play())
    gc.collect()
    assert ended == results and not complaints
