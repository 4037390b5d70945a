"""The stored result as a figure; the scenarios are played without what draws it."""

import io

from kit.core.extra import require

require("bench", "matplotlib")

import matplotlib as mpl
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from kit.conformance.scenario import COMPOSERS, SCENARIOS
from kit.conformance.table import Mark, Table

_COLOURS: dict[Mark, str] = {
    "pass": "#2f81c7",
    "fail": "#e0823d",
    "not offered": "#a8b0b8",
    "void": "#ffffff",
}
_MARKS = list(_COLOURS)
_TITLE = "Which system passes which scenario, in its best configuration"
_WORDS = (
    "Each system in the best configuration that its documentation offers. Left half: faithful composer, right half:\n"
    "claiming. Blue: passed, orange: failed, grey: not offered, and counted as not passed."
)


def figure(table: Table) -> str:
    """The best configurations as an SVG: a row for each system, a column for each scenario, half of it a composer."""
    drawing = Figure(figsize=(8.5, 5), layout="constrained")
    axes = drawing.subplots()
    names: list[str] = []
    marks: list[list[int]] = []
    for system in table.systems:
        count, plays = table.score(system, best=True)
        names.append(f"{system['name']}, {count} of {plays}")
        by_play = table.marks(system)
        row: list[int] = []
        for scenario in SCENARIOS:
            for composer in COMPOSERS:
                row.append(_MARKS.index(by_play.get((scenario.id, composer, True), "void")))
        marks.append(row)
    colours = ListedColormap(list(_COLOURS.values()))
    axes.pcolormesh(marks, cmap=colours, vmin=0, vmax=len(_MARKS) - 1, edgecolors="white")
    axes.vlines(range(0, len(marks[0]), 2), 0, len(marks), colors="white", lw=3)
    axes.invert_yaxis()
    axes.xaxis.tick_top()
    axes.set_xticks(
        range(1, len(marks[0]), 2), [scenario.id for scenario in SCENARIOS], rotation=90
    )
    axes.set_yticks([number + 0.5 for number in range(len(names))], names)
    axes.set_xlabel(_WORDS)
    text = io.StringIO()
    # The same result is the same file.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "conformance"}):
        drawing.savefig(text, format="svg", metadata={"Date": None, "Title": _TITLE})
    return text.getvalue()
