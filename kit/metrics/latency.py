"""How long turns took: routing, the first text, the whole turn, as percentiles by pattern and by whether anybody was asked."""

import math
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from kit.core.record import TurnRecord
from kit.core.value import Value

Path = Literal["every turn", "nobody asked", "sub-agents asked"]
Measure = Literal["routing", "first_text", "turn"]


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
        return [(f"{name}_seconds_{p}", of, s and getattr(s, p)) for name, s in spreads for p in ("p50", "p95", "p99")]


def latencies(turns: Sequence[TurnRecord]) -> tuple[Latency, ...]:
    """Returns the latencies of ended turns, by pattern and path; a path that no turn took is left out."""
    groups = [
        (pattern, path, [t for t in turns if t.pattern == pattern and (path == "every turn" or path == path_of(t))])
        for pattern in sorted({turn.pattern for turn in turns})
        for path in get_args(Path)
    ]
    return tuple(
        Latency(
            pattern=pattern,
            path=path,
            routing=spread(turn.measures.routing for turn in group),
            first_text=spread(turn.ttft for turn in group),
            turn=spread(turn.seconds for turn in group),
        )
        for pattern, path, group in groups
        if group
    )


def path_of(turn: TurnRecord) -> Path:
    """Whether a turn asked any sub-agent."""
    return "sub-agents asked" if turn.measures.agents else "nobody asked"


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed (nearest rank)."""
    ascending = sorted(values)
    return ascending[max(0, math.ceil(share * len(ascending) - 1e-9) - 1)]


def spread(values: Iterable[float | None]) -> Spread | None:
    """Percentiles of the values that are there; None when none is."""
    there = [value for value in values if value is not None]
    if not there:
        return None
    return Spread(count=len(there), p50=percentile(there, 0.5), p95=percentile(there, 0.95), p99=percentile(there, 0.99))
