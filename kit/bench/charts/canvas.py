"""What all figures share: width, colours, type, an empty canvas; and the table that stands beside them."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import RcKeyType
from pandas.io.formats.style import Styler

WIDTH = 6.5
"""Inches: a column of text."""
INK = "#2B2F36"
GREY = "#6F7782"
PALE = "#DFE5EC"
BLUE = "#0072B2"
ORANGE = "#E69F00"
RUST = "#B8500B"
RED = "#B3261E"
"""Blue and orange differ in lightness too, so they survive colour blindness and a grey printer.
Rust is orange fit for words."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 2)),
    (0, (1, 1)),
    (0, (5, 1, 1, 1)),
    (0, (3, 3)),
    (0, (8, 2, 1, 2)),
    (0, (1, 3)),
    "--",
)
"""Beside a colour, each line of a figure has a marker and dashes by its place: they tell lines apart in grey."""
_STYLE: dict[RcKeyType, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "grid.color": PALE,
    "figure.dpi": 130,
    "figure.titlesize": 10,
    "figure.titleweight": "bold",
}


@contextmanager
def canvas(height: float) -> Generator[tuple[Figure, Axes]]:
    """An empty figure in the style of the kit; ticks and legend are made late, so all drawing happens inside."""
    with panels(height, 1) as (figure, (axes,)):
        yield figure, axes


@contextmanager
def panels(
    height: float, count: int, *, sharey: bool = True
) -> Generator[tuple[Figure, list[Axes]]]:
    """The same with several panels side by side."""
    with plt.rc_context(_STYLE):
        # Not squeezed: a single panel comes in a list, too.
        figure, row = plt.subplots(
            1, count, figsize=(WIDTH, height), layout="constrained", sharey=sharey, squeeze=False
        )
        # Pyplot would show it a second time in a notebook.
        plt.close(figure)
        for axes in row[0]:
            axes.set_axisbelow(True)
        yield figure, list(row[0])


def headline(figure: Figure, text: str) -> None:
    """A title over all panels, where that of a single one stands."""
    figure.suptitle(text, x=0.01, ha="left", color=INK)


def table(frame: pd.DataFrame) -> Styler:
    """A frame for reading: no index, text to the left, numbers to the right with two decimals."""
    words = frame.select_dtypes(exclude="number").columns
    styles: list[Any] = []
    for column in map(frame.columns.get_loc, words):
        styles.append({"selector": f".col{column}", "props": "text-align: left"})
    style = frame.style.hide().set_table_styles(
        [*styles, {"selector": "td", "props": "white-space: nowrap"}]
    )
    style.format(precision=2)
    return style
