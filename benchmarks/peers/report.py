"""From the rows of all processes to tables in Markdown and to the bars: medians over rounds, and ratios of medians."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from experiment import CHUNKS, CROWD, MESSAGES, SIZES

Row = dict[str, Any]
"""What one process found out: adapter, experiment, round, date, load of the machine; label,
versions and figures, or error."""
KIT, HAND = "kit", "hand_loop"
CELLS = [f"N={n}{tools}" for tools in ("", ", tools") for n in SIZES]
STREAM = f"N=2, {CHUNKS} chunks"


@dataclass(frozen=True)
class Summary:
    """All rounds in one."""

    figures: Mapping[str, Mapping[str, float]]
    """Adapter -> `measure, cell` -> median over rounds."""
    labels: Mapping[str, str]
    versions: Mapping[str, str]
    """Package -> version."""
    errors: Sequence[str]
    """A sentence for each process that failed."""
    rounds: int
    date: str
    """The day of the last row."""
    load: float
    """Processes that wanted to run when a row was begun, in the median; 1 on a machine that does nothing else."""

    def figure(self, adapter: str, key: str) -> float | None:
        return self.figures.get(adapter, {}).get(key)

    def ratio(
        self, adapter: str, key: str, other: str, other_key: str | None = None
    ) -> float | None:
        """How many times the figure of another adapter, or of another cell; None where one of them is missing."""
        ours, theirs = self.figure(adapter, key), self.figure(other, other_key or key)
        return None if ours is None or not theirs else ours / theirs

    def best_peer(self, key: str) -> str:
        """The peer with the lowest figure; where no peer has one, an adapter without figures."""
        peers = {
            a: value
            for a in self.figures
            if a not in (KIT, HAND) and (value := self.figure(a, key)) is not None
        }
        return min(peers, key=peers.__getitem__, default="no peer")


class Bar(NamedTuple):
    """One line of what was promised."""

    text: str
    figure: float | None
    """None where something it needs was not measured."""
    limit: float
    at_least: bool = False

    @property
    def verdict(self) -> str:
        if self.figure is None:
            return "not measured"
        return (
            "holds"
            if (self.figure >= self.limit if self.at_least else self.figure <= self.limit)
            else "missed"
        )


def summarise(rows: Iterable[Row]) -> Summary:
    """Medians over rounds. A process that failed adds its error; its adapter stays in the tables with what it has."""
    samples: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    labels: dict[str, str] = {}
    versions: dict[str, str] = {}
    errors: list[str] = []
    rows = list(rows)
    for row in rows:
        cells = samples[row["adapter"]]
        if "error" in row:
            errors.append(
                f"{row['adapter']} failed in {row['experiment']}, round {row['round'] + 1}: {row['error']}"
            )
            continue
        labels[row["adapter"]] = row["label"]
        versions |= row["versions"]
        for key, value in row["figures"].items():
            cells[key].append(value)
    figures = {
        adapter: {key: statistics.median(values) for key, values in cells.items()}
        for adapter, cells in samples.items()
    }
    load = statistics.median([row["load"] for row in rows] or [0.0])
    last = max((row["date"] for row in rows), default="")
    return Summary(
        figures,
        labels,
        versions,
        errors,
        1 + max((row["round"] for row in rows), default=0),
        last[:10],
        load,
    )


def bars(summary: Summary) -> list[Bar]:
    """What the kit is held to, beside the best peer and the hand-written loop of the same run."""

    def beside(text: str, key: str, other: str, limit: float, at_least: bool = False) -> Bar:
        return Bar(text, summary.ratio(KIT, key, other), limit, at_least)

    def grown(text: str, key: str, limit: float) -> Bar:
        return Bar(text, summary.ratio(KIT, key, KIT, "ms, empty"), limit)

    small, large = "ms, N=2", "ms, N=8, tools"
    return [
        beside("N=2: CPU, x the best peer", small, summary.best_peer(small), 0.75),
        beside("N=2: calls, x the hand loop", "calls, N=2", HAND, 0.75),
        beside(
            f"{CHUNKS} chunks a call: calls, x the streaming hand loop",
            f"calls, {STREAM}",
            HAND,
            0.9,
        ),
        beside("N=8 with tools: CPU, x the best peer", large, summary.best_peer(large), 0.5),
        beside(
            f"{CROWD} turns at once: turns a second, x the hand loop",
            "turns/s, crowd",
            HAND,
            1.0,
            True,
        ),
        Bar("KiB allocated for a turn in flight", summary.figure(KIT, "KiB, crowd"), 64),
        grown(f"{MESSAGES:,} messages that the kit stored: CPU, x an empty turn", "ms, stored", 2),
        grown(f"{MESSAGES:,} messages handed in anew: CPU, x an empty turn", "ms, handed in", 4),
    ]


def say_bars(lines: Sequence[Bar]) -> str:
    """Bar, figure, verdict: one line each."""
    return table(
        ["bar", "limit", "figure", ""],
        [
            [
                bar.text,
                f"at {'least' if bar.at_least else 'most'} {bar.limit:g}",
                number(bar.figure, missing=""),
                bar.verdict,
            ]
            for bar in lines
        ],
    )


def page(summary: Summary) -> str:
    """The tables, what they were measured with, and what failed."""
    versions = ", ".join(
        f"{package} {version}" for package, version in sorted(summary.versions.items())
    )
    return "\n\n".join(
        [
            f"Measured on {summary.date}, medians of {summary.rounds} rounds, the machine's load "
            f"{summary.load:.1f}. {versions}.",
            f"### CPU, ms a turn\n\n{size_table(summary, 'ms', 2)}",
            f"### Calls a turn\n\n{size_table(summary, 'calls', 0)}",
            f"### {CROWD} turns at once\n\n{crowd_table(summary)}",
            f"### After {MESSAGES:,} messages\n\n{history_table(summary)}",
            f"### Streaming, {CHUNKS} chunks a call\n\n{stream_table(summary)}",
            *(
                ["### What failed\n\n" + "\n".join(f"- {error}" for error in summary.errors)]
                if summary.errors
                else []
            ),
        ]
    )


def size_table(summary: Summary, measure: str, places: int) -> str:
    rows = [
        [
            label(summary, adapter),
            *(number(summary.figure(adapter, f"{measure}, {cell}"), places) for cell in CELLS),
        ]
        for adapter in summary.figures
    ]
    return table(["", *CELLS], rows)


def crowd_table(summary: Summary) -> str:
    head = [
        "",
        "turns/s",
        "x hand loop",
        "CPU ms a turn",
        "KiB allocated a turn in flight",
        "KiB resident",
    ]
    keys = ["mean ms, crowd", "KiB, crowd", "resident KiB, crowd"]
    rows = [
        [
            label(summary, adapter),
            number(summary.figure(adapter, "turns/s, crowd"), 0),
            number(summary.ratio(adapter, "turns/s, crowd", HAND)),
            *(
                number(summary.figure(adapter, key), 2 if key.startswith("mean") else 0)
                for key in keys
            ),
        ]
        for adapter in summary.figures
    ]
    return table(head, rows)


def history_table(summary: Summary) -> str:
    rows = [
        [
            label(summary, adapter) + (", its own session" if cell == "stored" else ""),
            *(number(summary.figure(adapter, key)) for key in ("ms, empty", f"ms, {cell}")),
            number(summary.ratio(adapter, f"ms, {cell}", adapter, "ms, empty"), 1),
            number(summary.ratio(adapter, f"mean ms, {cell}", adapter, "mean ms, empty"), 1),
        ]
        for adapter in summary.figures
        for cell in ("stored", "handed in")
        if cell == "handed in" or adapter == KIT
    ]
    return table(
        [
            "",
            "CPU ms of an empty turn",
            "CPU ms after",
            "x empty",
            "x empty, with the garbage collector",
        ],
        rows,
    )


def stream_table(summary: Summary) -> str:
    cpu, calls = f"ms, {STREAM}", f"calls, {STREAM}"
    rows = [
        [
            label(summary, adapter),
            number(summary.figure(adapter, cpu)),
            number(summary.ratio(adapter, cpu, HAND)),
            number(summary.figure(adapter, calls), 0),
            number(summary.ratio(adapter, calls, HAND)),
        ]
        for adapter in summary.figures
    ]
    return table(["", "CPU ms a turn", "x hand loop", "calls a turn", "x hand loop"], rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown: the first column to the left, the others to the right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows))


def label(summary: Summary, adapter: str) -> str:
    """What a framework calls itself; the adapter's name where every process of it failed."""
    return summary.labels.get(adapter, adapter)


def number(value: float | None, places: int = 2, missing: str = "failed") -> str:
    return missing if value is None else f"{value:,.{places}f}"
