"""What a turn costs beside a hand-written loop: Python calls (exact) and CPU (noisy), interleaved in one run."""

import asyncio
import statistics
import tempfile
import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

from benchmarks.call_count import count_calls
from benchmarks.turn_cost.workload import HandLoop, KitLoop, Runner

GATE = {"whole replies": 0.675, "streaming": 0.82}
"""Python calls of a turn may be at most this many times the hand loop's, which goes through LangChain's wrapper."""
IN_FLIGHT = 64
"""KiB that a turn in flight may hold, its store and its trace included."""
AT_ONCE = 100
ROUNDS = 9
TURNS = 25


@dataclass(frozen=True)
class Cost:
    """One way of running the turn, in one mode."""

    name: str
    mode: str
    calls: float
    """Python and C calls a turn, as cProfile counts them: the same on every machine."""
    cpu_ms: float
    """Median over rounds, milliseconds a turn, one after the other."""
    cpu_ms_at_once: float
    """The same with AT_ONCE turns at once; its inverse is the throughput of a core."""


async def calls_per_turn(runner: Runner) -> float:
    """Calls a turn makes once everything is warm."""
    await _play(runner, 10)
    return await count_calls(_play(runner)) / TURNS


async def cpu_ms(runner: Runner) -> float:
    began = time.process_time()
    await _play(runner)
    return (time.process_time() - began) / TURNS * 1e3


async def _play(runner: Runner, turns: int = TURNS) -> None:
    for number in range(turns):
        await runner.turn(f"turn {number}")


async def cpu_ms_at_once(runner: Runner) -> float:
    began = time.process_time()
    await asyncio.gather(*(runner.turn(f"turn {number}") for number in range(AT_ONCE)))
    return (time.process_time() - began) / AT_ONCE * 1e3


async def kib_in_flight(runner: Runner, turns: int = 1000) -> float:
    """Python memory a turn holds at the peak of so many that run at once: they begin together and keep step."""
    await runner.turn("warm")
    tracemalloc.start()
    try:
        await asyncio.gather(*(runner.turn(f"turn {number}") for number in range(turns)))
        return tracemalloc.get_traced_memory()[1] / 1024 / turns
    finally:
        tracemalloc.stop()


async def measure(n: int = 2) -> list[Cost]:
    """Both ways in both modes, rounds interleaved so that a busy machine hits all alike; tracing to a SQLite file."""
    costs: list[Cost] = []
    with tempfile.TemporaryDirectory() as folder:
        for mode, streaming in (("whole replies", False), ("streaming", True)):
            runners: dict[str, Runner] = {
                "hand loop": HandLoop(n, streaming),
                "kit, traced": KitLoop(n, streaming, str(Path(folder) / f"{streaming}.db")),
            }
            calls: dict[str, float] = {}
            for name, runner in runners.items():
                calls[name] = await calls_per_turn(runner)
            times: dict[str, list[tuple[float, float]]] = {name: [] for name in runners}
            for _ in range(ROUNDS):
                for name, runner in runners.items():
                    times[name].append((await cpu_ms(runner), await cpu_ms_at_once(runner)))
            costs += [
                Cost(
                    name, mode, calls[name], *map(statistics.median, zip(*times[name], strict=True))
                )
                for name in runners
            ]
    return costs


def report(gate: bool = False) -> int:
    """Prints the table; with `gate`, returns 1 when a mode is above GATE."""
    costs = asyncio.run(measure())
    head = (
        f"{'calls/turn':>11} {'CPU ms/turn':>12} {f'at {AT_ONCE}':>7} {'x calls':>8} "
        f"{'x CPU':>7} {f'x at {AT_ONCE}':>8}"
    )
    print(f"{'mode':15} {'runner':12} {head}")
    broken: list[str] = []
    for hand, ours in zip(costs[::2], costs[1::2], strict=True):
        for cost in (hand, ours):
            ratio = cost.calls / hand.calls
            cpu = cost.cpu_ms / hand.cpu_ms
            times = f"{cost.cpu_ms:12.2f} {cost.cpu_ms_at_once:7.2f}"
            at_once = cost.cpu_ms_at_once / hand.cpu_ms_at_once
            print(
                f"{cost.mode:15} {cost.name:12} {cost.calls:11.0f} {times} {ratio:8.2f} {cpu:7.2f} {at_once:8.2f}"
            )
        broken += [ours.mode] * (ours.calls > GATE[ours.mode] * hand.calls)
    kib: list[float] = []
    for loop in (HandLoop, KitLoop):
        kib.append(asyncio.run(kib_in_flight(loop(2, streaming=False))))
    print(
        f"KiB a turn in flight, 1,000 at once: hand loop {kib[0]:.0f}, kit, traced {kib[1]:.0f} (at most {IN_FLIGHT})"
    )
    limits = ", ".join(f"{mode} {limit}" for mode, limit in GATE.items())
    print(
        f"gate, x the hand loop's calls at most: {limits}: {'BROKEN by ' + ', '.join(broken) if broken else 'held'}"
    )
    if broken and gate:
        return 1
    return 0
