"""Work that is awaited together: nothing is left behind, whatever becomes of a part."""

import asyncio
import gc
from typing import Any

import pytest

from kit.runtime.clock import run_virtual
from kit.runtime.dispatch import together


async def after(seconds: float, result: Any, ended: list[Any]) -> Any:
    """Ends after its time, with the result or by raising it; whoever stops it waits a second more."""
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        await asyncio.sleep(1.0)
        raise
    finally:
        ended.append(result)
    if isinstance(result, BaseException):
        raise result
    return result


@pytest.mark.parametrize("second", ["fine", OSError("another"), asyncio.CancelledError()])
def test_the_first_exception_is_raised_once_all_have_ended(second: Any):
    ended: list[Any] = []
    complaints: list[Any] = []

    async def play() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: complaints.append(context)
        )
        with pytest.raises(ValueError, match="first"):
            await together(
                [
                    after(1.0, ValueError("first"), ended),
                    after(3.0, second, ended),
                    after(2.0, "third", ended),
                ]
            )

    run_virtual(play())
    gc.collect()
    assert len(ended) == 3 and ended[1:] == ["third", second] and not complaints


@pytest.mark.parametrize("stops", [1, 3])
def test_a_stop_reaches_all_of_them_and_is_passed_on_when_they_have_ended(stops: int):
    async def play() -> tuple[int, float]:
        ended: list[Any] = []
        task = asyncio.create_task(together([after(50.0, n, ended) for n in range(4)]))
        await asyncio.sleep(0.5)
        for _ in range(stops):
            task.cancel()
            await asyncio.sleep(0.25)
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(ended), asyncio.get_running_loop().time()

    ended, seconds = run_virtual(play())
    assert ended == 4 and seconds < 3.0


def test_a_stop_before_anything_began_leaves_nothing_that_runs():
    async def play() -> set[Any]:
        task = asyncio.create_task(together([after(50.0, n, []) for n in range(4)]))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert not run_virtual(play())
