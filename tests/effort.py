"""Processor time in a measure that no load and no machine moves: seconds at the pace of the machine on
which the bars were set."""

import gc
import os
import time
from collections.abc import Callable

QUIET = 3.0
"""Load below which a machine counts as not crowded."""
SLACK = 2.0
"""How far past a promise a time may be beside other work."""
REFERENCE_SECONDS = 0.0047
"""What `reference_work` took on the quiet machine on which the bars were set."""


def reference_work() -> int:
    """A fixed piece of plain Python: it allocates, hashes, sorts and joins, as a turn does."""
    found: dict[str, list[int]] = {}
    for number in range(25_000):
        found.setdefault(str(number % 997), []).append(number)
    words = sorted(f"{name}:{len(numbers)}" for name, numbers in found.items())
    return len(" ".join(words).split(":"))


def slowness() -> float:
    """How many times longer than on the quiet machine a piece of work takes right now; the least of three."""
    return min(_thread_seconds(reference_work) for _ in range(3)) / REFERENCE_SECONDS


def effort(work: Callable[[], object], plays: int = 3, enough: float = 0.0) -> float:
    """Seconds of processor time that `work` needs at the reference pace: the least of some plays. One that takes
    less than `enough` is the last.

    Each play is divided by the pace of the machine right before or after it: a core that is shared
    does less in a second of processor time, and the reference work feels that as well.
    """
    efforts: list[float] = []
    for _ in range(plays):
        leave_out_garbage_of_others()
        before = slowness()
        seconds = _thread_seconds(work)
        efforts.append(seconds / max(before, slowness()))
        if efforts[-1] < enough:
            break
    return min(efforts)


def leave_out_garbage_of_others() -> None:
    """From here on a collection looks through what is allocated from here on, not through what other
    tests of this process left."""
    gc.collect()
    gc.freeze()


def _thread_seconds(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def allowance(promised: float) -> float:
    """Returns the seconds after which what was promised to take so many has not kept it: beside other work a machine
    of two cores takes up to twice as long, on a crowded one twice its load times that."""
    crowd = os.getloadavg()[0]
    return promised * (SLACK if crowd < QUIET else SLACK * crowd)
