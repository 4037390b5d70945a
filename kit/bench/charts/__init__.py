"""Figures of notebooks and docs, drawn with matplotlib; the title of each says what was found."""

from kit.core.extra import require

require("bench", "matplotlib", "pandas")

from kit.bench.charts.canvas import BLUE, GREY, INK, ORANGE, PALE, RED, RUST, WIDTH, table
from kit.bench.charts.dots import dots
from kit.bench.charts.ecdf import ecdf
from kit.bench.charts.frame import load_frame
from kit.bench.charts.tradeoff import tradeoff

__all__ = [
    "BLUE",
    "GREY",
    "INK",
    "ORANGE",
    "PALE",
    "RED",
    "RUST",
    "WIDTH",
    "dots",
    "ecdf",
    "load_frame",
    "table",
    "tradeoff",
]
