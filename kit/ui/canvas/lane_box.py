"""A sub-agent's lane in the chat: its bar, and on a click its transcript."""

from collections.abc import Callable
from functools import partial
from html import escape

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.compose.page import PageSettings
from kit.core.fault import CATALOGUE, Kind
from kit.runtime.agents.api_agent import ApiAgent
from kit.runtime.context import Agent
from kit.ui.canvas.drawing import lane_html
from kit.ui.canvas.lane import Lane
from kit.ui.shared.place import Place
from kit.ui.shared.turn_view import Entry, Step
from kit.ui.shared.wording import literal, prose

_ICONS = {
    "running": "spinner",
    "ok": ":material/check_circle:",
    "partial": ":material/check_circle:",
    "failed": ":material/error:",
    "stopped": ":material/stop_circle:",
    "waiting": ":material/help:",
}
OnBreak = Callable[[str, Kind], None]
"""Makes a sub-agent, by its id, fail from now on."""
BREAKS: dict[str, Kind] = {"Hang": "hang", "Forge": "foreign_principal", "Kill": "raise"}
"""What can be done to a sub-agent at work: the word on its button, and the fault."""
OUT_OF_REACH = ("foreign_principal",)
"""What cannot be done to an agent that runs elsewhere: the replies that it gets do not pass through the kit."""


class LaneBox:
    """A lane of constant height, which opens. An `st.status` would do, but making one takes it 50 ms of sleep.

    The bar lies over the line of the expander: one whose label changes is closed under the reader's hand.
    """

    def __init__(
        self,
        step: Step,
        turn_id: str,
        page: PageSettings,
        agent: Agent | None,
        on_break: OnBreak | None,
    ):
        """Takes the next place of the page for a step of a turn by this agent, which is None where the deck has
        it no more; `on_break` makes it fail, or None where nobody may."""
        self._turn_id = turn_id
        self._page = page
        self._budget = agent.time_budget if agent else None
        self._unbreakable = OUT_OF_REACH if isinstance(agent, ApiAgent) else ()
        with st.container(gap=None):
            self._head = st.empty()
            self._lane = Place(st.empty())
        self._entries = 0
        self._finding = ""
        self._state = step.state
        self._on_break = on_break
        self._body = self._draw_head(step).container(gap=None)
        self._menu = self._body.empty()
        if on_break is not None and step.state == "running":
            self._draw_menu(step, on_break)
        self._body.caption(f"“{literal(step.query)}”")

    def draw(self, step: Step, lane: Lane, end: float, now: float) -> None:
        """Brings the box up to date, on an axis of `end` seconds; `now` in seconds since the turn began."""
        for entry in step.entries[self._entries :]:
            self._draw_entry(entry)
        self._entries = len(step.entries)
        if lane.finding != self._finding:
            self._finding = lane.finding
            self._body.html(f'<p class="act found-text">{escape(lane.finding)}</p>')
        if step.state != self._state:
            self._state = step.state
            # A box in the place of another one keeps what is in it.
            self._draw_head(step)
            self._menu.empty()
        pace = ""
        if step.state == "running":
            pace = self._pace(step, now)
        # The bar grows by itself: once a second is enough for the time beside it.
        if self._lane.is_new((lane, end, pace)):
            self._lane.slot.html(lane_html(lane, end, now, pace))

    def _draw_head(self, step: Step) -> DeltaGenerator:
        name = f"**{literal(step.label)}**"
        if step.state == "running" and self._on_break is not None:
            name += " `⚡`"
        return self._head.expander(name, icon=_ICONS[step.state], type="step")

    def _draw_menu(self, step: Step, on_break: OnBreak) -> None:
        """Offers to make the sub-agent fail while it works."""
        with self._menu.container(horizontal=True):
            for word, kind in BREAKS.items():
                if kind in self._unbreakable:
                    continue
                st.button(
                    word,
                    key=f"break-{kind}-{self._turn_id}-{step.span_id}",
                    help=f"{step.label} {CATALOGUE[kind].label}",
                    on_click=partial(on_break, step.agent, kind),
                )

    def _draw_entry(self, entry: Entry) -> None:
        if entry.is_status:
            self._body.caption(prose(entry.text))
        else:
            self._body.html(f'<p class="act">{entry.at:.1f} s · {escape(entry.text)}</p>')

    def _pace(self, step: Step, now: float) -> str:
        """Says how a sub-agent at work does; after a second for how long too, later of how many seconds."""
        pace = step.pace(now, self._page.quiet_after, self._page.stalled_after)
        if pace == "active":
            pace = "working"
        seconds = step.seconds(now)
        if seconds < 1:
            return pace
        limit = ""
        if self._budget and seconds > self._budget / 4:
            limit = f" of {self._budget:g} s"
        return f"{pace}, {int(seconds)} s{limit}"
