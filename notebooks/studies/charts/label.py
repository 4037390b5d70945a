"""The name of a line or of a part, written where it ends."""

from typing import Any

from matplotlib.axes import Axes


def label(
    axes: Axes, text: str, x: float, y: float, colour: str, height: float | None = None
) -> None:
    """Writes a text to the right of a point of a chart; at another `height` a thin rule leads to the point."""
    beside: Any = {"color": colour, "va": "center", "annotation_clip": False}
    if height is None or height == y:
        axes.annotate(text, (x, y), (6, 0), textcoords="offset points", **beside)
    else:
        rule = {
            "arrowstyle": "-",
            "color": colour,
            "linewidth": 0.7,
            "relpos": (0, 0.5),
            "shrinkA": 1,
            "shrinkB": 2,
        }
        axes.annotate(
            text,
            (x, y),
            (18, height),
            textcoords=("offset points", "data"),
            arrowprops=rule,
            **beside,
        )
