"""When whoever waits for a model gives up, and who is told of a pause, for clients that sleep before they try again."""

import asyncio
import math
from collections.abc import Callable
from contextvars import ContextVar

DEADLINE: ContextVar[float] = ContextVar("deadline", default=math.inf)
"""By the running loop's clock; set by whoever sets a deadline around a call."""
ON_PAUSE: ContextVar[Callable[[float, str], None] | None] = ContextVar("on_pause", default=None)
"""Is told how many seconds a client slept before it tried again, and why; set by whoever records the call."""


def seconds_left() -> float:
    """Returns how long anybody still waits; infinite where nobody set a deadline."""
    return DEADLINE.get() - asyncio.get_running_loop().time()
