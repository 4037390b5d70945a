"""Heat maps of counts, the diagonal in a colour of its own."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from kit.bench.charts.canvas import BLUE, GREY, PALE, RUST, headline, panels

Grid = Sequence[Sequence[int]]


def heat(
    grids: Mapping[str, Grid], names: Sequence[str], title: str, xlabel: str, ylabel: str
) -> Figure:
    """One square grid for each title, side by side; rows and columns stand for the same `names`.

    A count on the diagonal is blue, any other one rust, and darker the more it is; each is written
    in its cell, zeros small.
    """
    most = max((count for grid in grids.values() for row in grid for count in row), default=0)
    with panels(2.0 + 4.6 / len(grids), len(grids)) as (figure, row_of_axes):
        for axes, (name, grid) in zip(row_of_axes, grids.items(), strict=True):
            for y, row in enumerate(grid):
                for x, count in enumerate(row):
                    _cell(axes, x, y, count, most)
            axes.set_xlim(-0.5, len(names) - 0.5)
            axes.set_ylim(len(names) - 0.5, -0.5)
            axes.set_aspect("equal")
            axes.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
            axes.set_yticks(range(len(names)), names, fontsize=8)
            axes.tick_params(length=0)
            axes.spines[:].set_visible(False)
            axes.set_title(name, fontweight="normal", fontsize=9)
            axes.set_xlabel(xlabel, fontsize=9)
        row_of_axes[0].set_ylabel(ylabel, fontsize=9)
        headline(figure, title)
        return figure


def _cell(axes: Axes, x: int, y: int, count: int, most: int) -> None:
    colour = BLUE if x == y else RUST
    strength = 0.35 + 0.65 * count / most if count else 0.0
    axes.add_patch(
        Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, facecolor=PALE, alpha=0.45, linewidth=0)
    )
    axes.add_patch(
        Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, facecolor=colour, alpha=strength, linewidth=0)
    )
    ink = GREY if not count else "white" if strength > 0.55 else "black"
    axes.text(x, y, str(count), ha="center", va="center", fontsize=8 if count else 7, color=ink)
