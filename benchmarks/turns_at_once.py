"""Measures how long the event loop is silent while many turns run at once, and what they take.

    python benchmarks/turns_at_once.py [TURNS ...]

The consumer deck is played on the offline stand-in, each turn in a session of its own, traced to a file. A
task that does nothing else looks at the loop every two milliseconds. What passes between two looks is given in
processor time of the loop's thread, which is the same on a busy machine, and on the clock of the wall. What was
loaded before the turns is frozen, as the app does it: else the garbage collector reads all of it again,
0.15 s at a time.
"""

import asyncio
import gc
import sys
import tempfile
import time
from pathlib import Path

from kit import Settings, open_kit
from kit.runtime.handle import Reply

TICK = 0.002
QUESTION = "my receipt didn't scan, how many points do I have, and find coffee deals"


class LoopWatch:
    """The longest times between two looks at the loop."""

    def __init__(self) -> None:
        self.longest_cpu = 0.0
        self.longest_wall = 0.0

    async def run(self) -> None:
        cpu = time.thread_time()
        wall = time.perf_counter()
        while True:
            await asyncio.sleep(TICK)
            self.longest_cpu = max(self.longest_cpu, time.thread_time() - cpu)
            self.longest_wall = max(self.longest_wall, time.perf_counter() - wall - TICK)
            cpu = time.thread_time()
            wall = time.perf_counter()


async def play(turns: int, folder: Path) -> None:
    settings = Settings.read().with_(store=str(folder / f"{turns}.db"), pace=0.0)
    async with open_kit(settings) as kit:
        await kit.ask(QUESTION, kit.session("warm"))
        gc.collect()
        gc.freeze()
        watch = LoopWatch()
        watching = asyncio.create_task(watch.run())
        cpu = time.process_time()
        began = time.perf_counter()
        running: list[asyncio.Future[Reply]] = []
        for number in range(turns):
            running.append(kit.ask(QUESTION, kit.session(f"session {number}")).reply)
        replies = await asyncio.gather(*running)
        seconds = time.perf_counter() - began
        cpu = time.process_time() - cpu
        watching.cancel()
        failed = sum(reply.status != "ok" for reply in replies)
    size = sum(file.stat().st_size for file in folder.iterdir()) / turns / 1000
    print(f"{turns} turns at once: {seconds:.1f} s, {cpu:.1f} s CPU, {failed} late or failed")
    print(
        f"  the loop was silent for at most {watch.longest_cpu:.3f} s of its CPU, "
        f"{watch.longest_wall:.3f} s on the wall"
    )
    print(f"  {size:.0f} kB stored a turn")


def main() -> None:
    for turns in map(int, sys.argv[1:] or ("100", "500")):
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(play(turns, Path(folder)))


if __name__ == "__main__":
    main()
