"""A sub-agent's step on the page: what it does and for how long, then how it went; on a click, its transcript."""

from html import escape

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.compose.page import PageSettings
from kit.ui.shared.tag import Tag, Tone
from kit.ui.shared.template import render
from kit.ui.shared.turn_view import Entry, Pace, Step
from kit.ui.shared.wording import literal, prose

_ICONS = {
    "running": "spinner",
    "ok": ":material/check_circle:",
    "partial": ":material/check_circle:",
    "failed": ":material/error:",
    "stopped": ":material/stop_circle:",
}
_TONES: dict[Pace, Tone] = {"starting": "", "active": "busy", "quiet": "", "stalled": "warn"}


class StepBox:
    """A line of constant height, which opens. An `st.status` would do, but making one takes it 50 ms of sleep.

    What moves while it works lies over the line: a box whose label changes is closed under the reader's hand.
    """

    def __init__(self, step: Step, page: PageSettings, budget: float | None, *, full: bool):
        """Takes the next place of the page. `budget`: seconds the sub-agent may take; `full`: with
        its request and its acts."""
        self._page = page
        self._budget = budget
        self._full = full
        with st.container(gap=None):
            self._head = st.empty()
            self._pace = st.empty()
        self._label = ""
        self._pace_html = ""
        self._entries = 0
        self._step = step
        self._body = self._draw_head(step).container(gap=None)
        if full:
            self._body.caption(f"“{literal(step.query)}”")

    def draw(self, step: Step, now: float) -> None:
        """Brings the box up to date; `now` in seconds since the turn began."""
        for entry in step.entries[self._entries :]:
            self._draw_entry(entry)
        self._entries = len(step.entries)
        if (self._label, self._step.state) != (_label(step), step.state):
            # A box in the place of another one keeps what is in it.
            self._draw_head(step)
        self._step = step
        if step.state == "running":
            html = self._pace_of(step, now)
        else:
            html = ""
        if html != self._pace_html:
            self._pace_html = html
            self._pace.html(html) if html else self._pace.empty()

    def _draw_head(self, step: Step) -> DeltaGenerator:
        self._label = _label(step)
        return self._head.expander(self._label, icon=_ICONS[step.state], type="step")

    def _draw_entry(self, entry: Entry) -> None:
        if entry.is_status:
            self._body.caption(prose(entry.text))
        elif self._full:
            self._body.html(f'<p class="act">{entry.at:.1f} s · {escape(entry.text)}</p>')

    def _pace_of(self, step: Step, now: float) -> str:
        pace = step.pace(now, self._page.quiet_after, self._page.stalled_after)
        took = step.seconds(now)
        limit = ""
        if self._budget and took > self._budget / 4:
            limit = f" of {self._budget:g}"
        tag = Tag(text=pace, tone=_TONES[pace])
        line = "".join(step.lines[-1:])
        return render("pace", pace=tag, line=line, time=f"{took:.1f}{limit} s")


def _label(step: Step) -> str:
    if step.state == "running":
        return f"**{literal(step.label)}**"
    if step.note:
        verdict = f": {step.verdict}"
    else:
        verdict = ""
    if verdict and step.state == "failed":
        verdict = f":red[{verdict}]"
    return f"**{literal(step.label)}**{verdict} · {step.seconds(0.0):.1f} s"
