"""How often `kit bench` is wrong about whole systems: `python benchmarks/foreign_systems.py [RUNS]`.

Stochastic systems are played through the whole engine, ledger and files included: each beside an
equal one, which no verdict may tell apart more often than 5 times in 100, and beside one that is 10
points better, which must be found as often as the kit promises for the number of cases it names.
"""

import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any

from kit.bench.grid.comparison import Comparison
from kit.bench.grid.report import compare_run
from kit.bench.grid.run import run_grid
from kit.bench.systems.bench import systems_spec
from kit.bench.systems.source import SystemSource
from kit.experiment_kits import ExperimentKits
from kit.settings import Settings

FALSE = 0.05
"""The share of false verdicts that is promised at most."""
POWER = 0.8
"""How often a difference is found on as many cases as the kit says that it takes."""
WORSE = 0.1
"""The difference that must be found."""
CASES = 60
PILOT = 1_000
"""Cases of the one run that says how many cases the difference takes."""
EASY = (0.97, 0.92)
"""How often the better and the worse system are right on every other case; the rest is hard."""
HARD = (0.73, 0.58)
Answer = Callable[[str], Awaitable[str]]


@dataclass(frozen=True)
class Outcome:
    """What one comparison came to."""

    verdict: Comparison
    played: int
    """Cells, of both systems."""


def system(which: int, seed: str) -> Answer:
    """A system that is right by a law: 0 is the better one. What it answers depends on the seed and
    the message alone."""

    async def answer(message: str) -> str:
        is_easy = message.endswith(("0", "2", "4", "6", "8"))
        chance = EASY[which] if is_easy else HARD[which]
        if Random(f"{seed}|{message}").random() < chance:
            return "right"
        return "wrong"

    return answer


def play(seed: int, cases: int, *, before: int, after: int, decided: bool = False) -> Outcome:
    """Plays two systems, by the numbers of their laws, and compares them as the command does."""
    rows = [{"message": f"question {number}", "expected_text": "right"} for number in range(cases)]
    limits: dict[str, Any] = {"when_decided": True} if decided else {}
    sources = [
        SystemSource("after", system(after, f"{seed}|after"), Path()),
        SystemSource("before", system(before, f"{seed}|before"), Path()),
    ]
    spec = systems_spec(sources, rows, margin=WORSE, limits=limits)
    kits = ExperimentKits(Settings(store=":memory:"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = run_grid(spec, folder, kits, 1)
        verdicts = compare_run(spec, folder)[1]
    return Outcome(verdicts[0], run.done)


def false_verdicts(runs: int, *, decided: bool = False) -> int:
    """How many of so many comparisons of equal systems end in better or worse."""
    count = 0
    for seed in range(runs):
        outcome = play(seed, CASES, before=0, after=0, decided=decided)
        count += outcome.verdict.verdict in ("better", "worse")
    return count


def cases_needed() -> int:
    """How many cases the kit itself says that the difference takes."""
    verdict = play(0, PILOT, before=0, after=1).verdict
    assert verdict.cases is not None
    return verdict.cases


def found(runs: int, cases: int, *, decided: bool = False) -> tuple[int, float]:
    """How many of so many comparisons find the worse system, and the cells played in the mean."""
    count = 0
    cells = 0
    for seed in range(runs):
        outcome = play(seed, cases, before=0, after=1, decided=decided)
        count += outcome.verdict.verdict == "worse"
        cells += outcome.played
    return count, cells / runs


def most_false(runs: int) -> float:
    """The most false verdicts that are no sign of a broken promise: two standard errors more."""
    return runs * FALSE + 2 * sqrt(runs * FALSE * (1 - FALSE))


def least_found(runs: int) -> float:
    """The fewest finds that are no sign of a broken promise: two standard errors less."""
    return runs * POWER - 2 * sqrt(runs * POWER * (1 - POWER))


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(
        f"{runs} runs each; at most {most_false(runs):.1f} false verdicts are no broken promise, and"
    )
    print(
        f"at least {least_found(runs):.1f} finds of a system that is {100 * WORSE:.0f} points worse"
    )
    at_plan = false_verdicts(runs)
    print(f"equal systems, {CASES} cases: {at_plan} false verdicts", flush=True)
    at_any_look = false_verdicts(runs, decided=True)
    print(f"the same, stopped when decided: {at_any_look} false verdicts", flush=True)
    needed = cases_needed()
    finds, _ = found(runs, needed)
    print(f"10 points worse, {needed} cases, as the kit says: found {finds} times", flush=True)
    early, cells = found(runs, needed, decided=True)
    print(f"the same, stopped when decided: found {early} times, after {cells / 2:.0f} cases")
    is_kept = max(at_plan, at_any_look) <= most_false(runs)
    return 0 if is_kept and min(finds, early) >= least_found(runs) else 1


if __name__ == "__main__":
    sys.exit(main())
