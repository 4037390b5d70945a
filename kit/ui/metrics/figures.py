"""What each metric is called on the page, what it means, and how its value is read."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from kit.compose.yaml_loader import load_yaml
from kit.core.value import Value
from kit.metrics.summary import Metrics
from kit.ui.shared.wording import label, took

Unit = Literal["count", "seconds", "share", "each", "dollars"]
Group = Literal[
    "Routing",
    "Latency",
    "Sub-agents",
    "Failures",
    "Whose data",
    "Progress",
    "Spending",
    "Judged by labels",
]
GROUPS: tuple[Group, ...] = get_args(Group)


class Figure(Value):
    """One metric of docs/metrics.md in plain words."""

    metric: str
    group: Group
    label: str
    unit: Unit
    means: str


def _figures(text: str) -> Iterator[Figure]:
    for group, metrics in load_yaml(text).items():
        for metric, fields in metrics.items():
            yield Figure(metric=metric, group=group, **fields)


FIGURES = tuple(_figures(Path(__file__).with_name("figures.yaml").read_text(encoding="utf-8")))
"""Every metric that there is, in the order in which they are read."""


class Line(Value):
    """A metric with its values: (of what, as it is read), or one value of nothing in particular."""

    figure: Figure
    values: tuple[tuple[str, str], ...]


def lines(summary: Metrics) -> tuple[Line, ...]:
    """Returns every metric with its values; one without a value has none."""
    values: dict[str, list[tuple[str, Any]]] = {}
    for row in summary.rows():
        values.setdefault(row["metric"], []).append((row["of"], row["value"]))
    results: list[Line] = []
    for f in FIGURES:
        results.append(
            Line(
                figure=f,
                values=tuple(
                    (of, read(value, f.unit))
                    for of, value in _once(values.get(f.metric, ()))
                    if value is not None
                ),
            )
        )
    return tuple(results)


def _once(values: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Leaves out turns that asked sub-agents where every turn did: their value stands there already."""
    alone: set[str] = set()
    for of, _ in values:
        if of.endswith(", nobody asked"):
            alone.add(of.removesuffix(", nobody asked"))
    return (
        (of, value) for of, value in values if of.removesuffix(", sub-agents asked") in (of, *alone)
    )


def read(value: Any, unit: Unit) -> str:
    """Returns a value as a person reads it."""
    match unit:
        case "count":
            return f"{value:,}"
        case "seconds":
            return took(value)
        case "share":
            if value in (0, 1) or value >= 0.1:
                return f"{value:.0%}"
            return f"{value:.1%}"
        case "each":
            return f"{value:.2f}".rstrip("0").rstrip(".")
        case "dollars":
            if value:
                return f"${value:,.4f}"
            return "$0"


def agents_table(summary: Metrics) -> tuple[list[str], list[list[str]]]:
    """Returns head and rows of the metrics that each sub-agent has, the slowest first."""
    figures = [figure for figure in FIGURES if figure.group == "Sub-agents"]
    values: dict[tuple[Any, Any], Any] = {}
    for row in summary.rows():
        values[(row["metric"], row["of"])] = row["value"]

    def cell(agent: str, figure: Figure) -> str:
        value = values.get((figure.metric, agent))
        if value is None:
            return "–"
        return read(value, figure.unit)

    agents = [one.agent for one in sorted(summary.agents, key=lambda one: -one.latency.p95)]
    rows = [[label(agent), *(cell(agent, figure) for figure in figures)] for agent in agents]
    return ["Sub-agent", *(figure.label for figure in figures)], rows
