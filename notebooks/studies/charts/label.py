"""The name of a line or of a part, written where it ends."""

from matplotlib.axes import Axes


def label(axes: Axes, text: str, x: float, y: float, colour: str) -> None:
    """Writes a text to the right of a point of a chart."""
    axes.annotate(text, (x, y), (6, 0), textcoords="offset points", color=colour, va="center", annotation_clip=False)
