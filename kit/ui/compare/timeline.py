"""The spans of a turn as bars of HTML: timelines of several turns share one axis, and one that runs
grows without a flicker."""

from html import escape

from kit.core.trace import Span
from kit.ui.shared.turn_view import TurnView
from kit.ui.shared.wording import span_name, took

STEPS = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)
"""Where an axis may end, times a power of ten: it grows a step at a time while a turn runs."""


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
    items: list[str] = []
    for depth, span in view.trace.rows():
        if not full and depth > 1 and span.kind != "agent":
            continue
        if view.running and span.status == "running":
            items.append(_item(depth, span, end, now, ""))
        else:
            items.append(_item(depth, span, end, span.ended, _state(span)))
    head = ""
    if axis:
        head = _axis(end)
    name = f"Timeline of {escape(label)}"
    return (
        f'<section class="timeline">{head}<ol aria-label="{name}">{"".join(items)}</ol></section>'
    )


def _state(span: Span) -> str:
    words = ""
    if span.is_replay:
        words += " · played"
    if span.status == "error":
        words += " · failed"
    elif span.status == "running":
        words += " · not finished"
    return words


def _axis(end: float) -> str:
    ticks = ""
    for quarter in range(5):
        ticks += f'<i style="left:{25 * quarter}%">{end * quarter / 4:g}</i>'
    return f'<div class="axis" aria-hidden="true"><b>seconds</b><span>{ticks}</span></div>'


def _item(depth: int, span: Span, end: float, ended: float, state: str) -> str:
    left = 100 * min(span.started / end, 1.0)
    right = 100 * min(ended / end, 1.0)
    # The time stands after its bar where there is room, else before it, else within it.
    if right < 70:
        style = f' style="left:{right:.2f}%"'
    elif left > 30:
        style = f' style="right:{100 - left:.2f}%"'
    else:
        style = f' class="inside" style="left:{left:.2f}%"'
    kinds = f"{span.kind} {span.status}"
    if span.is_replay:
        kinds += " replay"
    return (
        f'<li class="{kinds}"><span style="--depth:{depth}">{escape(span_name(span))}</span>'
        f'<span><i style="left:{left:.2f}%;width:{right - left:.2f}%"></i>'
        f"<small{style}>{took(ended - span.started)}{state}</small></span></li>"
    )
