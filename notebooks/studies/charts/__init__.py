"""The charts that only notebooks draw; those that the pages draw too, and the canvas of all, are in
kit.bench.charts."""

from studies.charts.against import against
from studies.charts.bands import bands
from studies.charts.groups import means, shares
from studies.charts.heat import heat
from studies.charts.sent_trace import sent_trace
from studies.charts.stack import stack
from studies.charts.time_against_n import time_against_n
from studies.charts.waterfall import KINDS, fan_seconds, waterfall

__all__ = [
    "KINDS",
    "against",
    "bands",
    "fan_seconds",
    "heat",
    "means",
    "sent_trace",
    "shares",
    "stack",
    "time_against_n",
    "waterfall",
]
