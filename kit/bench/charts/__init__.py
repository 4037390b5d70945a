"""Figures of notebooks and docs, drawn with matplotlib; the title of each says what was found."""

from kit.bench.charts.against import against
from kit.bench.charts.bands import bands
from kit.bench.charts.canvas import BLUE, GREY, INK, ORANGE, PALE, RED, RUST, WIDTH, table
from kit.bench.charts.dots import dots
from kit.bench.charts.ecdf import ecdf
from kit.bench.charts.frame import frame, load_frame, means, shares
from kit.bench.charts.heat import heat
from kit.bench.charts.stack import stack
from kit.bench.charts.time_against_n import time_against_n
from kit.bench.charts.tradeoff import tradeoff
from kit.bench.charts.waterfall import KINDS, fan_seconds, waterfall

__all__ = [
    "BLUE",
    "GREY",
    "INK",
    "KINDS",
    "ORANGE",
    "PALE",
    "RED",
    "RUST",
    "WIDTH",
    "against",
    "bands",
    "dots",
    "ecdf",
    "fan_seconds",
    "frame",
    "heat",
    "load_frame",
    "means",
    "shares",
    "stack",
    "table",
    "time_against_n",
    "tradeoff",
    "waterfall",
]
