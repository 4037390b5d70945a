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
        if full or depth == 1 or span.kind == "agent":
            live = view.running and span.status == "running"
            if span.is_replay:
                played = " · played"
            else:
                played = ""
            state = played + {"error": " · failed", "running": " · not finished"}.get(
                span.status, ""
            )
            items.append(
                _item(depth, span, end, now if live else span.ended, "" if live else state)
            )
    if axis:
        head = _axis(end)
    else:
        head = ""
    return (
        f'<section class="timeline">{head}<ol aria-label="Timeline of '
        f'{escape(label)}">{"".join(items)}</ol></section>'
    )


def _axis(end: float) -> str:
    ticks = "".join(f'<i style="left:{25 * step}%">{end * step / 4:g}</i>' for step in range(5))
    return f'<div class="axis" aria-hidden="true"><b>seconds</b><span>{ticks}</span></div>'


def _item(depth: int, span: Span, end: float, ended: float, state: str) -> str:
    start, right = (100 * min(seconds / end, 1.0) for seconds in (span.started, ended))
    if right < 70:
        style = f' style="left:{right:.2f}%"'
    else:
        style = f' style="right:{100 - start:.2f}%"'
    if right >= 70 and start <= 30:
        style = f' class="inside" style="left:{start:.2f}%"'
    kinds = f"{span.kind} {span.status}" + (" replay" if span.is_replay else "")
    return (
        f'<li class="{kinds}"><span style="--depth:{depth}">{escape(span_name(span))}</span>'
        f'<span><i style="left:{start:.2f}%;width:{right - start:.2f}%"></i>'
        f"<small{style}>{took(ended - span.started)}{state}</small></span></li>"
    )
