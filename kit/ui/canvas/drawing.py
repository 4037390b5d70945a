"""Lanes as HTML. Python says what happened when; CSS places every bar for the moment `--t`
(kit/ui/canvas/canvas.css), so a turn that runs, a stored one and a replay are one drawing."""

from collections.abc import Sequence

from markupsafe import Markup

from kit.ui.canvas.lane import Lane, now_of
from kit.ui.shared.template import render
from kit.ui.shared.turn_view import TurnView

STEPS = (1, 2, 4, 6, 8, 10)
"""Where an axis may end, times a power of ten: its quarters are round. It grows by steps while a turn runs."""
FINE_STEPS = (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 4.8, 6, 8, 10)
"""The same where nothing runs any more: no more than a third of it is empty."""


def axis_end(seconds: float, *, fine: bool = False) -> float:
    """Returns the end of an axis, in seconds, that has room for so many; `fine`: it need not last, for nothing runs."""
    steps = FINE_STEPS if fine else STEPS
    power = 0.1
    while power * steps[-1] < seconds:
        power *= 10
    return next(power * step for step in steps if power * step >= seconds)


def canvas_html(
    lanes: Sequence[Lane],
    end: float,
    label: str,
    *,
    now: float,
    full: bool = True,
    axis: bool = True,
) -> str:
    """Returns a whole canvas on an axis of `end` seconds, as it stands `now`.

    `label` names the turn to a screen reader; `full`: with calls of tools and with words, else bars
    alone; `axis`: with its ticks above.
    """
    # HTML of our own templates: it is not escaped again.
    head = Markup(head_html(lanes, end, label, axis=axis))
    rows = [Markup(lane_html(lane, end, now)) for lane in lanes]
    return render("canvas", head=head, lanes=rows, full=full)


def head_html(lanes: Sequence[Lane], end: float, label: str, *, axis: bool = True) -> str:
    """Returns the ticks of the axis, and beside them a sentence for each lane that only a screen
    reader reads."""
    return render("canvas_head", lanes=lanes, end=end, label=label, axis=axis)


def lane_html(lane: Lane, end: float, now: float, pace: str = "") -> str:
    """Returns one lane on an axis of `end` seconds as it stands `now`; while it works its bar goes on
    growing by itself. `pace`: how that goes, in the place of "working"."""
    return render("lane", lane=lane, end=end, now=now, pace=pace)


def replay_html(view: TurnView, address: str, moment: str = "") -> str:
    """Returns what plays a turn that has ended again; `address` of the page that shows it by itself,
    `moment`: seconds to open at, or nothing for its end."""
    end = now_of(view)
    return render("replay", end=end, axis=axis_end(end), address=address, moment=moment)
