"""The spans of a turn as bars of HTML: timelines of several turns share one axis, and one that runs
grows without a flicker."""

from typing import NamedTuple

from kit.core.trace import Span
from kit.ui.shared.template import render
from kit.ui.shared.turn_view import TurnView
from kit.ui.shared.wording import took

STEPS = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)
"""Where an axis may end, times a power of ten: it grows a step at a time while a turn runs."""


class _Bar(NamedTuple):
    """A span with its ends in percent of the axis."""

    span: Span
    depth: int
    left: float
    right: float
    words: str


def axis_end(seconds: float) -> float:
    """Returns the end of an axis, in seconds, that has room for so many."""
    power = 0.1
    while power * STEPS[-1] < seconds:
        power *= 10
    return next(power * step for step in STEPS if power * step >= seconds)


def timeline_html(
    view: TurnView, end: float, label: str, *, now: float, full: bool = True, axis: bool = True
) -> str:
    """Returns a list of bars on an axis of `end` seconds; `full` has every span, else the turn's
    own calls and every agent.

    `now`: seconds since the turn began, until which what has not ended is drawn. `axis`: with its ticks above.
    """
    bars: list[_Bar] = []
    for depth, span in view.trace.rows():
        if not full and depth > 1 and span.kind != "agent":
            continue
        ended = span.ended
        words = _state(span)
        if view.running and span.status == "running":
            # A span that is at work ends where the clock is, else its bar would not move.
            ended = now
            words = ""
        left = 100 * min(span.started / end, 1.0)
        right = 100 * min(ended / end, 1.0)
        bars.append(_Bar(span, depth, left, right, took(ended - span.started) + words))
    return render("timeline", bars=bars, end=end, label=label, axis=axis)


def _state(span: Span) -> str:
    words = ""
    if span.is_replay:
        words += " · played"
    if span.status == "error":
        words += " · failed"
    elif span.status == "running":
        words += " · not finished"
    return words
