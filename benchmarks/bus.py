"""How long an entry of the bus takes from one process to another, over the Redis of this machine.

`python benchmarks/bus.py` prints the median and the 99th percentile of 500 entries.
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time

from kit.stores.bus.redis_bus import open_redis_bus
from tests.redis_server import redis_server

ENTRIES = 500
PAUSE = 0.005
"""Seconds between two entries, so that each meets a reader that waits."""


async def publish(url: str) -> None:
    """What the other process does: it says when each entry was published."""
    async with open_redis_bus(url) as bus:
        for _ in range(ENTRIES):
            await bus.publish("bench", {"at": time.monotonic()})
            await asyncio.sleep(PAUSE)


async def measure(url: str) -> list[float]:
    """Returns the milliseconds that each entry took."""
    milliseconds: list[float] = []
    async with open_redis_bus(url) as bus:
        process = subprocess.Popen([sys.executable, __file__, url])
        after = "0"
        while len(milliseconds) < ENTRIES:
            for entry in await bus.read("bench", after, wait=10):
                milliseconds.append(1000 * (time.monotonic() - entry.body["at"]))
                after = entry.id
        process.wait()
    return milliseconds


def main() -> int:
    """Measures, or publishes where it is told to."""
    if len(sys.argv) > 1:
        asyncio.run(publish(sys.argv[1]))
        return 0
    with tempfile.TemporaryDirectory() as folder, redis_server(folder) as server:
        milliseconds = asyncio.run(measure(server.url))
    percentiles = statistics.quantiles(milliseconds, n=100)
    print(f"p50 {percentiles[49]:.2f} ms, p99 {percentiles[98]:.2f} ms, {ENTRIES} entries")
    return 0


if __name__ == "__main__":
    sys.exit(main())
