"""The chat: a question, its sub-agents at work side by side, one answer, and how it came about."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.core.context import Session
from kit.core.fault import Fault, kinds_of
from kit.settings import Settings
from kit.ui.canvas import Canvas, ask
from kit.ui.frame import STYLE, new_session, open_host, told
from kit.ui.view import TurnView, advance, lost

if TYPE_CHECKING:
    from kit.ui.host import Host

WINDOW = 10
"""Turns shown at first, and added by each "Show earlier"."""
DEEP = 3
"""Newest turns that are shown with their steps and their trace: replaying more makes a long session slow."""
SUGGESTIONS = {
    ":material/stars: My points": "How many points do I have?",
    ":material/hub: Three things at once": "My receipt didn't scan, how many points do I have, and find coffee deals",
    ":material/restaurant: Dinner and games": "Find thai restaurants nearby, and how far am I in my games?",
    ":material/waving_hand: Small talk": "Hi there, how are you?",
}


def page() -> None:
    """Draws the page; turns go on in the host whatever becomes of this run."""
    st.html(STYLE)
    place = _Places.lay()
    with told(place.top):
        _conversation(place)


@dataclass(frozen=True)
class _Places:
    """Where things go, laid out in the same order on every run: a page that is drawn in place shows nothing twice."""

    header: DeltaGenerator
    top: DeltaGenerator
    turns: DeltaGenerator
    stop: DeltaGenerator
    message: str | None
    """What was just asked."""

    @classmethod
    def lay(cls) -> "_Places":
        header = st.container(horizontal=True, vertical_alignment="center")
        header.markdown("**dispatch-kit**", width="content")
        top = st.empty()
        turns = st.container()
        with st.bottom:
            stop = st.empty()
        # Not inside st.bottom: only an input that finds its own way down makes the page follow new text.
        typed = st.chat_input("Ask about points, receipts or offers", submit_mode="disable")
        message = st.session_state.pop("ask", None) or typed
        return cls(header, top, turns, stop, message if message and message.strip() else None)


def _conversation(place: _Places) -> None:
    fresh = st.session_state.get("fresh") == st.query_params["session"]
    if fresh and not place.message:
        _first_screen(place.top)
    host = open_host(Settings.read())
    place.header.badge(host.kit.model, icon=":material/memory:", color="gray")
    faults = _faults(host, place.header)
    session = _session(host)
    if place.message:
        host.start(place.message, session, faults)
        st.session_state.pop("fresh", None)
    window = st.session_state.get("window", WINDOW)
    views = host.views(session, limit=window)
    if views:
        place.header.space("stretch")
        place.header.button("New chat", icon=":material/add:", type="tertiary", on_click=new_session)
    if not views and not fresh:
        _first_screen(place.top)
    if len(views) == window:
        place.top.button("Show earlier", icon=":material/history:", on_click=_widen, type="tertiary")
    with place.turns:
        _turns(host, views, place.stop)


def _faults(host: "Host", header: DeltaGenerator) -> list[Fault]:
    """What the next questions are made to run into; chosen by a person, empty until then (PC2-S5.8)."""
    team = host.kit.team
    known = [Fault(where=who, kind=kind) for who in team.agents for kind in kinds_of(who, team.root)]
    with header.popover("Failures", icon=":material/bolt:", type="tertiary"):
        st.caption("Parts that fail on purpose while they are listed here. The services and their failures are simulated.")
        chosen = st.multiselect("Make fail", known, format_func=lambda fault: fault.label, key="faults")
    if chosen:
        header.badge("failures on", icon=":material/bolt:", color="orange")
    return chosen


def _session(host: "Host") -> Session:
    """The session of the page's address; a fresh one when that is somebody else's."""
    session = host.session(st.query_params["session"])
    if session is None:
        new_session()
        session = host.kit.session(st.query_params["session"])
    return session


def _first_screen(place: DeltaGenerator) -> None:
    with place.container():
        st.markdown("## What can I look up for you?")
        st.markdown(
            "Ask several things in one message: each part goes to the sub-agent that knows it, all work at the same time, "
            "and you get one answer."
        )
        st.pills("Try one", list(SUGGESTIONS), key="suggestion", on_change=_suggested, label_visibility="collapsed")


def _suggested() -> None:
    picked = st.session_state.pop("suggestion", None)
    if picked:
        ask(SUGGESTIONS[picked])


def _widen() -> None:
    st.session_state["window"] = st.session_state.get("window", WINDOW) + WINDOW


def _turns(host: "Host", views: list[TurnView], stop: DeltaGenerator) -> None:
    running: list[tuple[Canvas, TurnView]] = []
    for age, view in zip(range(len(views), 0, -1), views, strict=True):
        canvas = Canvas(view.question)
        canvas.draw(view, steps=age <= DEEP, again=age == 1)
        if view.running:
            running.append((canvas, view))
    for canvas, view in running:
        _follow(host, canvas, view, stop)


def _follow(host: "Host", canvas: Canvas, view: TurnView, stop: DeltaGenerator) -> None:
    """Draws a turn as it happens. A click is noticed at the next draw, so there is one every 200 ms even when all is silent."""
    stop.button("Stop", icon=":material/stop_circle:", key=f"stop-{view.turn_id}", on_click=host.cancel, args=(view.turn_id,))
    while view.running:
        batch = host.follow(view.turn_id, len(view.events))
        view = advance(view, batch.events)
        if batch.done and view.running:
            view = lost(view)
        if not view.running:
            stop.empty()
        canvas.draw(view, again=True)
