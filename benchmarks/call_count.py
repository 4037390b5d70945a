"""Counts the calls that a piece of work makes: the same on every machine, whatever else runs on it."""

import cProfile
import gc
from collections.abc import Awaitable


async def count_calls(work: Awaitable[object]) -> int:
    """Returns the Python and C calls that are made until it is done."""
    profile = cProfile.Profile()
    # What was there before must not be collected meanwhile: its finalisers would be counted.
    gc.collect()
    gc.disable()
    profile.enable()
    try:
        await work
    finally:
        profile.disable()
        gc.enable()
    total = 0
    for entry in profile.getstats():
        total += entry.callcount
    return total
