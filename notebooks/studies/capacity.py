"""How many users one process can serve, by virtual time: turns wait as their models do and share
one core for what they compute.

A queueing model, not a load test: the computing is measured on the kit's own turns
(`measure_turn`), the waiting is drawn from the laws of simulated models, and the clock is virtual,
so an hour of traffic takes seconds and a seed gives the same figures.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import NamedTuple

from kit.bench.routing import RoutingKit
from kit.core.simulation import Law, Part, Truth
from kit.metrics.estimate import Estimate
from kit.models.simulated import SimulatedModel, use_truth
from kit.runtime.clock import run_virtual
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from kit.stores.sqlite import SqliteStore
from studies.fan_out_time import ALIKE
from studies.study_deck import plain_cards, study_deck, study_session
from studies.study_statistics import quantile


class TurnCost(NamedTuple):
    """What one turn needs of a core."""

    parts: int
    cpu: float
    """Seconds, median of the turns measured; their models' own share is in it."""
    steps: int
    """Model calls, between which it waits."""


def measure_turn(parts: int = 2, turns: int = 40, store: str = ":memory:") -> TurnCost:
    """Measures mediated turns of the kit over simulated models, traced to a SQLite store, in real time. Blocks."""

    async def measure() -> list[float]:
        team = bind(
            study_deck(plain_cards(ALIKE), cap=len(ALIKE)), SimulatedModel(name="simulated"), {}
        )
        kit = RoutingKit(team, SqliteStore(store))
        seconds: list[float] = []
        for number in range(turns + 5):
            truth = Truth(
                case=str(number),
                parts=tuple(Part(agent=agent, query="this") for agent in list(ALIKE)[:parts]),
            )
            began = time.process_time()
            with use_truth(truth):
                turn = run_turn("everything", study_session(f"s{number}"), kit)
            await turn
            seconds.append(time.process_time() - began)
        kit.store.close()
        return seconds[5:]  # the first ones pay for what is made on first use

    return TurnCost(parts, median(run_virtual(measure())), parts + 2)


@dataclass(frozen=True)
class Load:
    """Users that each send a message, read the answer, and send the next."""

    law: Law
    """Of every model call."""
    cpu: float
    """Seconds of a core that a turn needs; split evenly over its model calls."""
    parts: int = 2
    pause: float = 60.0
    """Mean seconds between an answer and the next message; exponential."""


class Level(NamedTuple):
    """What so many users get, watched for a while; a list of them is a tidy frame."""

    users: int
    p50: Estimate
    p95: Estimate
    """Seconds of a turn."""
    a_second: float
    """Turns that end."""
    busy: float
    """Share of the time the core computes."""


def level(load: Load, users: int, turns: int = 1000, seed: int = 7) -> Level:
    """Plays so many users and watches about so many turns, each to its end; in virtual time. Blocks."""
    return run_virtual(_Core(load, random.Random(seed)).serve(users, turns))


def sweep(load: Load, shares: Sequence[float], turns: int = 1000, seed: int = 7) -> list[Level]:
    """Plays a level for each share of the users that fill the core."""
    most = users_to_fill(load)
    return [level(load, max(1, int(most * share)), turns, seed) for share in shares]


def users_to_fill(load: Load) -> int:
    """Returns how many users keep the core computing all the time if none has to queue: with more,
    turns must grow longer."""
    return int((load.pause + mean_turn(load)) / load.cpu)


def most_served(levels: Sequence[Level], slower: float = 1.1) -> int:
    """Returns the most users whose 95th percentile, by its whole interval, is below `slower` times
    that of the fewest users."""
    least = min(levels, key=lambda level: level.users)
    return max(
        level.users
        for level in levels
        if level is least or level.p95.high <= slower * least.p95.value
    )


WARM_UP = 6.0
"""Mean model calls before anything is watched: by then as many users are in a turn as there will be."""


@dataclass
class _Begun:
    """A turn that began."""

    at: float
    took: float | None = None
    """Seconds, once it has ended."""


class _Core:
    """One event loop: a task that computes queues for it, a task that waits for a model does not."""

    def __init__(self, load: Load, draws: random.Random):
        self._load = load
        self._draws = draws
        self._core = asyncio.Lock()
        self._cpu = 0.0
        self._begun: list[_Begun] = []

    async def serve(self, users: int, turns: int) -> Level:
        """Watches the turns that begin after the warm-up, each to its end: of those that end in so short a time the
        long ones would be missing."""
        loop = asyncio.get_running_loop()
        tasks = [asyncio.create_task(self._user()) for _ in range(users)]
        mean_call = self._load.law.latency.mean
        await asyncio.sleep(WARM_UP * mean_call)
        first_moment = loop.time()
        before = len(self._begun)
        cpu = self._cpu
        expected = users / (self._load.pause + 3 * mean_call)
        while len(self._begun) - before < turns:
            await asyncio.sleep(turns / expected / 20)
        last_moment = loop.time()
        turns_over = [
            turn
            for turn in self._begun
            if turn.took and first_moment < turn.at + turn.took <= last_moment
        ]
        busy = (self._cpu - cpu) / (last_moment - first_moment)
        turns_at_work = self._begun[before:]
        while any(turn.took is None for turn in turns_at_work):
            await asyncio.sleep(mean_call)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        took = [turn.took for turn in turns_at_work if turn.took is not None]
        p50 = quantile(took, 0.5, bounded=True)
        p95 = quantile(took, 0.95, bounded=True)
        return Level(users, p50, p95, len(turns_over) / (last_moment - first_moment), busy)

    async def _user(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._draws.expovariate(1 / self._load.pause))
            turn = _Begun(loop.time())
            self._begun.append(turn)
            await self._call()
            await asyncio.gather(*(self._call() for _ in range(self._load.parts)))
            await self._call()
            turn.took = loop.time() - turn.at

    async def _call(self) -> None:
        """Waits for a model call, then computes on its reply."""
        share = 1 - self._draws.random()
        await asyncio.sleep(self._load.law.latency.quantile(min(share, 1 - 1e-12)))
        seconds = self._load.cpu / (self._load.parts + 2)
        async with self._core:
            await asyncio.sleep(seconds)
            self._cpu += seconds


def mean_turn(load: Load, draws: int = 20_000, seed: int = 7) -> float:
    """Returns the seconds of a turn on an idle core, by the laws alone."""
    source = random.Random(seed)

    def wait() -> float:
        return load.law.latency.quantile(min(1 - source.random(), 1 - 1e-12))

    return load.cpu + fmean(
        wait() + max(wait() for _ in range(load.parts)) + wait() for _ in range(draws)
    )
