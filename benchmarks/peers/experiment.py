"""One experiment on one framework, in a process of its own: `experiment.py ADAPTER EXPERIMENT` prints one line of JSON.

Before anything is measured, an adapter has to join all results of turns that are played at once.
"""

import asyncio
import cProfile
import gc
import importlib
import importlib.metadata
import json
import logging
import pstats
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from workload import Adapter, History, Spec, is_whole, long_history

Figures = dict[str, float]
"""`measure, cell` -> figure. Measures: "ms" is the CPU of the median turn, "mean ms" that of all
turns, the garbage collector's share included; "calls" of Python and C functions a turn; "turns/s";
"KiB" a turn in flight, "resident KiB" likewise."""
SIZES = (1, 2, 4, 8)
CHUNKS = 20
CROWD = 100
"""Turns at once."""
PAUSE = 0.02
"""Seconds a model call sleeps where turns are played at once."""
MESSAGES = 1000
WARM = 10
"""Turns before anything is measured, and at least so many that are."""
CPU_SECONDS = 0.2
"""What a cell is timed for, at least."""


class WrongAnswer(Exception):
    """An adapter left a result out, or mixed up those of two turns."""


async def check(adapter: Adapter, spec: Spec) -> None:
    """Plays turns at once, one of them with a history. Raises WrongAnswer unless each joins the results of its own."""
    texts = [f"check {place}" for place in range(4)]
    histories: list[History] = [long_history(4), (), (), ()]
    compare(spec, texts, await asyncio.gather(*map(adapter.turn, texts, histories)))


def compare(spec: Spec, texts: list[str], answers: list[str]) -> None:
    """Raises WrongAnswer unless each text has its own answer, and the whole of it."""
    for text, answer in zip(texts, answers, strict=True):
        if not is_whole(spec, text, answer):
            raise WrongAnswer(f"{text!r} was answered {answer[:200]!r}")


async def warm_up(adapter: Adapter, history: History = ()) -> None:
    """Plays turns, and takes what is loaded by then out of garbage collection, as a server does once it is warm."""
    for place in range(WARM):
        await adapter.turn(f"warm {place}", history)
    gc.collect()
    gc.freeze()


async def time_turns(cell: str, adapter: Adapter, history: History = ()) -> Figures:
    """CPU of the whole process, all its threads together, over WARM turns and CPU_SECONDS or more."""
    await warm_up(adapter, history)
    spent: list[float] = []
    while len(spent) < WARM or sum(spent) < CPU_SECONDS:
        begun = time.process_time()
        await adapter.turn(f"turn {len(spent)}", history)
        spent.append(time.process_time() - begun)
    return {
        f"ms, {cell}": statistics.median(spent) * 1e3,
        f"mean ms, {cell}": statistics.mean(spent) * 1e3,
    }


async def count_calls(cell: str, adapter: Adapter) -> Figures:
    """Calls as cProfile counts them; other work on the machine does not change them."""
    await warm_up(adapter)
    profile = cProfile.Profile()
    profile.enable()
    for place in range(WARM):
        await adapter.turn(f"turn {place}")
    profile.disable()
    return {f"calls, {cell}": pstats.Stats(profile).total_calls / WARM}  # type: ignore[attr-defined]


def cells(folder: Path) -> Mapping[str, Spec]:
    """Name -> what is played: every size with and without a tool for each sub-agent, and the stream."""
    whole = {
        f"N={n}{', tools' if tool else ''}": Spec(n, tool) for tool in (False, True) for n in SIZES
    }
    specs = whole | {f"N=2, {CHUNKS} chunks": Spec(chunks=CHUNKS)}
    return {
        name: replace(spec, store=str(folder / f"{place}.db"))
        for place, (name, spec) in enumerate(specs.items())
    }


async def over_cells(
    module: Any, folder: Path, measure: Callable[[str, Adapter], Awaitable[Figures]]
) -> Figures:
    figures: Figures = {}
    for name, spec in cells(folder).items():
        adapter = module.Adapter(spec)
        await check(adapter, spec)
        figures |= await measure(name, adapter)
    return figures


async def play_crowd(adapter: Adapter, spec: Spec) -> float:
    """Seconds until CROWD turns at once have ended. Raises WrongAnswer where one has the results of another."""
    texts = [f"turn {place}" for place in range(CROWD)]
    begun = time.perf_counter()
    answers = await asyncio.gather(*map(adapter.turn, texts))
    seconds = time.perf_counter() - begun
    compare(spec, texts, answers)
    return seconds


async def crowd(module: Any, folder: Path) -> Figures:
    """Turns at once. The first crowd shows what it adds to the process, two more are timed."""
    spec = crowd_spec(folder)
    adapter = module.Adapter(spec)
    await check(adapter, spec)
    await warm_up(adapter)
    before = memory_kib("VmRSS")
    await play_crowd(adapter, spec)
    resident = (memory_kib("VmHWM") - before) / CROWD
    begun = time.process_time()
    seconds = [await play_crowd(adapter, spec) for _ in range(2)]
    cpu = (time.process_time() - begun) / (2 * CROWD) * 1e3
    return {
        "turns/s, crowd": CROWD / statistics.mean(seconds),
        "mean ms, crowd": cpu,
        "resident KiB, crowd": resident,
    }


async def memory(module: Any, folder: Path) -> Figures:
    """What Python allocates for turns at once, at its peak; other work on the machine hardly changes it."""
    spec = crowd_spec(folder)
    adapter = module.Adapter(spec)
    await play_crowd(adapter, spec)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        await play_crowd(adapter, spec)
        return {"KiB, crowd": (tracemalloc.get_traced_memory()[1] - before) / 1024 / CROWD}
    finally:
        tracemalloc.stop()


def crowd_spec(folder: Path) -> Spec:
    return Spec(pause=PAUSE, store=str(folder / "crowd.db"))


async def history(module: Any, folder: Path) -> Figures:
    """An empty turn, one after MESSAGES handed in anew, and one in a session that the framework
    stored itself, where it can."""
    spec = Spec(store=str(folder / "history.db"))
    adapter = module.Adapter(spec)
    await check(adapter, spec)
    figures = await time_turns("empty", adapter) | await time_turns(
        "handed in", adapter, long_history(MESSAGES)
    )
    if hasattr(module, "open_session"):
        async with module.open_session(
            replace(spec, store=str(folder / "stored.db")), MESSAGES
        ) as session:
            compare(spec, ["after all that"], [await session.turn("after all that")])
            figures |= await time_turns("stored", session)
    return figures


def memory_kib(field: str) -> float:
    """Memory of this process: VmRSS is what it has now, VmHWM the most it had; not a number where there is no /proc."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((float(line.split()[1]) for line in lines if line.startswith(field)), float("nan"))


EXPERIMENTS: Mapping[str, Callable[[Any, Path], Awaitable[Figures]]] = {
    "calls": lambda module, folder: over_cells(module, folder, count_calls),
    "memory": memory,
    "cpu": lambda module, folder: over_cells(module, folder, time_turns),
    "crowd": crowd,
    "history": history,
}


async def main(name: str, experiment: str) -> None:
    """Runs one experiment and prints label, versions and figures."""
    module = importlib.import_module(f"adapters.{name}")
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        figures = await EXPERIMENTS[experiment](module, Path(folder))
    versions = {package: importlib.metadata.version(package) for package in module.PACKAGES}
    print(json.dumps({"label": module.NAME, "versions": versions, "figures": figures}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
