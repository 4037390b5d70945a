"""The canvas of a turn in the chat: brought up to date while the turn runs, and played again once
it has ended."""

from collections.abc import Mapping, Sequence
from html import escape

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.compose.page import PageSettings
from kit.runtime.context import Agent
from kit.ui.canvas.drawing import axis_end, head_html, lane_html
from kit.ui.canvas.lane import Lane, lanes_of
from kit.ui.canvas.lane_box import LaneBox, OnBreak
from kit.ui.canvas.replay import draw_replay
from kit.ui.shared.place import Place
from kit.ui.shared.turn_view import TurnView

TICK = 0.2
"""Seconds between two moves of the clock of a running turn: each is a message to the browser."""


class TurnLanes:
    """A place for the lanes of one turn; empty as long as nobody was asked."""

    def __init__(
        self,
        place: DeltaGenerator,
        agents: Mapping[str, Agent],
        page: PageSettings,
        on_break: OnBreak | None,
    ):
        """`agents` of the deck; `on_break` makes one of them fail, or None where nobody may."""
        self._agents = agents
        self._page = page
        self._on_break = on_break
        with place:
            self._head = Place(st.empty())
            self._orchestrator = Place(st.empty())
            self._agent_lanes = st.container(gap=None)
            self._end = Place(st.empty())
            self._foot = Place(st.empty())
        self._boxes: list[LaneBox] = []
        self._lanes: tuple[Lane, ...] = ()
        self._events = -1

    def draw(self, view: TurnView, now: float) -> bool:
        """Brings the lanes up to date, and returns whether there are any; `now` in seconds since the
        turn began."""
        if not view.steps and not view.skipped:
            return False
        if len(view.events) != self._events or not view.running:
            self._events = len(view.events)
            self._lanes = lanes_of(view)
        # The page's clock may be behind that of the turn, which has what just happened.
        now = max(now, view.events[-1].at)
        end = axis_end(now)
        first, *rest = self._lanes
        agent_lanes = rest[: len(view.steps)]
        last = rest[len(view.steps) :]
        self._head.html(head_html(self._lanes, end, "What each did"))
        _draw_lanes(self._orchestrator, [first], end, now)
        for step in view.steps[len(self._boxes) :]:
            agent = self._agents.get(step.agent)
            with self._agent_lanes:
                self._boxes.append(LaneBox(step, view.turn_id, self._page, agent, self._on_break))
        for box, step, lane in zip(self._boxes, view.steps, agent_lanes, strict=True):
            box.draw(step, lane, end, now)
        _draw_lanes(self._end, last, end, now)
        self._draw_foot(view, now)
        return True

    def _draw_foot(self, view: TurnView, now: float) -> None:
        if not view.running:
            if self._foot.is_new("replay"):
                draw_replay(self._foot.slot, view)
            return
        words = (
            f"{now // TICK * TICK:.1f} s · {view.headline}. Each bar is a sub-agent on its part."
        )
        if self._on_break:
            words += " Press ⚡ to break one: hang, forge or kill."
        self._foot.html(f'<div class="replay clock">{escape(words)}</div>')


def _draw_lanes(place: Place, lanes: Sequence[Lane], end: float, now: float) -> None:
    """Draws some lanes in one place, where they or the axis changed; a bar that works grows by itself."""
    if place.is_new((*lanes, end)):
        place.slot.html("".join(lane_html(lane, end, now) for lane in lanes))
