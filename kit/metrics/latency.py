"""How long turns took: routing, the first text, the whole turn, as percentiles by pattern and by
whether anybody was asked."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from kit.core.value import Value
from kit.stores.tally import ASKED, NOBODY, Tally

Path = Literal["every turn", "nobody asked", "sub-agents asked"]
Measure = Literal["routing", "first_text", "turn"]
_WAYS: Mapping[Path, tuple[str, ...]] = {
    "every turn": (NOBODY, ASKED),
    "nobody asked": (NOBODY,),
    "sub-agents asked": (ASKED,),
}


class Spread(Value):
    """Percentiles by nearest rank, in the unit of what was measured."""

    count: int
    p50: float
    p95: float
    p99: float


class Latency(Value):
    """The turns of one pattern on one path; seconds, None where no turn has any."""

    pattern: str
    path: Path
    routing: Spread | None
    """Deciding whom to ask, and writing prior_context."""
    first_text: Spread | None
    """From the message to the first text a person could read, a preamble included."""
    turn: Spread | None

    def rows(self) -> list[tuple[str, str, float | None]]:
        """(metric, of, seconds): three percentiles of each measure."""
        of = f"{self.pattern}, {self.path}"
        spreads = [(name, getattr(self, name)) for name in get_args(Measure)]
        rows: list[tuple[str, str, float | None]] = []
        for name, s in spreads:
            for p in ("p50", "p95", "p99"):
                rows.append((f"{name}_seconds_{p}", of, s and getattr(s, p)))
        return rows


def latencies(tally: Tally) -> tuple[Latency, ...]:
    """Returns the latencies of ended turns, by pattern and path; a path that no turn took is left out."""
    patterns = sorted({key[1] for key in tally.counts if key[0] == "path"})
    results: list[Latency] = []
    for pattern in patterns:
        for path in get_args(Path):
            if any(tally.counts["path", pattern, way] for way in _WAYS[path]):
                results.append(
                    Latency(
                        pattern=pattern,
                        path=path,
                        **{
                            name: spread(_samples(tally, name, pattern, path))
                            for name in get_args(Measure)
                        },
                    )
                )
    return tuple(results)


def _samples(tally: Tally, name: str, pattern: str, path: Path) -> list[float]:
    samples: list[float] = []
    for way in _WAYS[path]:
        for value in tally.samples.get((name, pattern, way), ()):
            samples.append(value)
    return samples


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed (nearest rank)."""
    ascending = sorted(values)
    return ascending[max(0, math.ceil(share * len(ascending) - 1e-9) - 1)]


def spread(values: Iterable[float]) -> Spread | None:
    """Percentiles of values; None when there is none."""
    ascending = sorted(values)
    if not ascending:
        return None
    p50, p95, p99 = (percentile(ascending, share) for share in (0.5, 0.95, 0.99))
    return Spread(count=len(ascending), p50=p50, p95=p95, p99=p99)
