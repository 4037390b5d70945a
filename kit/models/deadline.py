"""When whoever waits for a model gives up, for clients that would sleep before they try again."""

import asyncio
import math
from contextvars import ContextVar

DEADLINE: ContextVar[float] = ContextVar("deadline", default=math.inf)
"""By the running loop's clock; set by whoever sets a deadline around a call."""


def seconds_left() -> float:
    """Returns how long anybody still waits; infinite where nobody set a deadline."""
    return DEADLINE.get() - asyncio.get_running_loop().time()
