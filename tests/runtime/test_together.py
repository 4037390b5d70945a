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
