"""metrics(): every metric of the catalogue over the stored turns, by one call."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from kit.core.display.count import many
from kit.core.record import TurnRecord
from kit.metrics import catalogue
from kit.metrics.catalogue import Metric
from kit.metrics.estimate import Estimate
from kit.metrics.sample import Figures, Label, Number, Sample, read_sample
from kit.stores.tally import Tally

if TYPE_CHECKING:
    from kit.stores.turn_store import TurnStore

ALL = 1_000_000_000
"""More turns than a store holds."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Metrics over ended turns; what needs labels is empty without them."""

    figures: Mapping[str, Figures]
    """Metric -> what it is of -> a number, or a share with its interval."""

    def numbers(self, metric: str) -> Mapping[str, Number]:
        """Returns the figures of a metric that is no share. Raises KeyError for an unknown one."""
        return cast("Mapping[str, Number]", self.figures[metric])

    def number(self, metric: str, of: str = "") -> Any:
        """Returns one figure of a metric that is no share. Raises KeyError where there is none."""
        return self.figures[metric][of]

    def shares(self, metric: str) -> Mapping[str, Estimate]:
        """Returns the figures of a metric whose unit is a share. Raises KeyError for an unknown one."""
        return cast("Mapping[str, Estimate]", self.figures[metric])

    def share(self, metric: str, of: str = "") -> Estimate:
        """Returns one share. Raises KeyError where there is none."""
        return self.shares(metric)[of]

    def figures_of(self, metric: Metric) -> list[tuple[str, Number | Estimate]]:
        """Returns the figures of a metric, each with the words for what it is of; a share of nothing is None."""
        figures: list[tuple[str, Number | Estimate]] = []
        for subject, figure in self.figures[metric.name].items():
            count = figure.n if isinstance(figure, Estimate) else 0
            number = many(count, metric.noun) if metric.noun else f"{count:,}"
            words = metric.words.format(of=subject, n=number)
            if isinstance(figure, Estimate) and not figure.n:
                figures.append((words, None))
            else:
                figures.append((words, figure))
        return figures

    def rows(self) -> list[dict[str, Any]]:
        """Returns plain rows {metric, of, value}; a metric without a value is there, with None.

        The row of a share has the ends of its interval too, `low` and `high`.
        """
        rows: list[dict[str, Any]] = []
        for metric in catalogue.METRICS:
            for words, figure in self.figures_of(metric):
                row: dict[str, Any] = {"metric": metric.name, "of": words, "value": figure}
                if isinstance(figure, Estimate):
                    row |= {"value": figure.value, "low": figure.low, "high": figure.high}
                rows.append(row)
        return rows


def metrics(
    store: "TurnStore",
    since: float | None = None,
    tenant: str | None = None,
    labels: Iterable[Label] = (),
    tally: Tally | None = None,
) -> Metrics:
    """Measures every metric over the ended turns of a store, of one tenant or all, begun at `since`
    (seconds since the epoch) or later.

    `tally` is what the store adds up to, where the caller has it.
    """
    return measure_all(read_sample(store, since, tenant, labels, tally))


def measure_all(sample: Sample) -> Metrics:
    """Measures every metric of the catalogue."""
    return Metrics({metric.name: metric.measure(sample) for metric in catalogue.METRICS})


def turns_since(
    store: "TurnStore", since: float | None = None, tenant: str | None = None
) -> list[TurnRecord]:
    """Returns the turns of a store, of one tenant or all, begun at `since` (seconds since the epoch)
    or later, in the store's order."""
    turns = store.turns(tenant_id=tenant, limit=ALL)
    return [turn for turn in turns if turn.started_at >= (since or 0.0)]
