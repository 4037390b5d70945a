"""Published latencies by path, each with the sample of ours that would settle it."""

from math import ceil, log, pi, sqrt
from statistics import NormalDist

from kit.bench.statistics.power import POWER
from kit.compose.yaml_loader import load_yaml
from kit.core.value import Value
from kit.home import HOME
from kit.metrics.estimate import normal_reach
from kit.metrics.latency import Path, Spread, TimedPart, latencies
from kit.stores.tally import Tally

PUBLISHED = HOME / "data" / "source" / "published.yaml"
VARIATION = 0.5
"""Assumed coefficient of variation of a latency, where a source gives no spread."""
CLOSE = 0.1
"""A median is settled when it is known this closely, as a share of itself."""


class LatencyBaseline(Value):
    """One published latency: of which measure, on which path, of which variant."""

    says: str
    source: str
    ms: float
    target_ms: float | None = None
    of: str = "no sample is given"
    """What it rests on, in words."""
    measure: TimedPart
    path: Path

    @property
    def sample(self) -> str:
        """The turns of ours that would settle it, times taken for log-normal with the assumed variation."""
        # Of a median, times the root of the turns.
        error = sqrt(log(1 + VARIATION**2) * pi / 2)
        settling = ceil((normal_reach() * error / log(1 + CLOSE)) ** 2)
        if self.target_ms is None:
            return f"{settling:,} turns for 10 % either way"
        below = ceil(
            ((normal_reach() + NormalDist().inv_cdf(POWER)) * error / log(self.target_ms / self.ms))
            ** 2
        )
        return f"{settling:,} turns for 10 % either way; {below:,} to show that it stays below {self.target_ms:g} ms"

    def ours(self, tally: Tally) -> dict[str, Spread]:
        """Returns pattern -> the same measure on the same path here."""
        return latencies(tally, self.measure, self.path)


def latency_baselines() -> tuple[LatencyBaseline, ...]:
    """Reads the latencies of data/source/published.yaml."""
    return tuple(
        map(
            LatencyBaseline.model_validate,
            load_yaml(PUBLISHED.read_text(encoding="utf-8"))["latencies"],
        )
    )
