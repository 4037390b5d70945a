"""The chat: a question, its sub-agents at work side by side, one answer, and how it came about."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.core.context import Session
from kit.settings import Settings
from kit.ui import address, scenario
from kit.ui.canvas import Canvas, Setting, ask
from kit.ui.frame import STYLE, open_host, told, visitor
from kit.ui.panel import Panel
from kit.ui.scenario import Scenario
from kit.ui.view import TurnView, advance, lost

if TYPE_CHECKING:
    from kit.ui.host import Host

WINDOW = 10
"""Turns shown at first, and added by each "Show earlier"."""
DEEP = 3
"""Newest turns that are shown with their steps and their trace: replaying more makes a long session slow."""
LOOK = 4.0
"""Seconds between two looks of an idle tab for a question asked in another one."""
MIXED = "My receipt didn't scan, how many points do I have, and find coffee deals"


@dataclass(frozen=True)
class Suggestion:
    """A question to begin with, and what goes wrong while it is answered."""

    question: str
    faults: tuple[str, ...] = ()


SUGGESTIONS = {
    ":material/stars: My points": Suggestion("How many points do I have?"),
    ":material/hub: Three things at once": Suggestion(MIXED),
    ":material/timer_off: Three at once, rewards times out": Suggestion(MIXED, ("rewards=hang",)),
    ":material/gpp_maybe: Someone else's data": Suggestion(
        "How many points do I have, and find coffee deals", ("rewards=foreign_principal",)
    ),
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
    phone: DeltaGenerator
    top: DeltaGenerator
    turns: DeltaGenerator
    desk: DeltaGenerator
    stop: DeltaGenerator
    asked: Suggestion | None
    """What was just asked."""

    @classmethod
    def lay(cls) -> "_Places":
        chat, side = st.columns([5, 2], gap="large")
        with chat:
            header = st.container(horizontal=True, vertical_alignment="center", key="header")
            header.markdown("**dispatch-kit**", width="content")
            top = st.empty()
            turns = st.container()
        phone = header.container(key="panel-phone", width="content").popover("This turn", icon=":material/info:", type="tertiary")
        desk = side.container(key="panel-desk")
        with st.bottom:
            stop = st.empty()
        # Not inside st.bottom: only an input that finds its own way down makes the page follow new text.
        typed = st.chat_input("Ask about points, receipts or offers", submit_mode="disable")
        question, faults = st.session_state.pop("ask", None) or (typed, ())
        asked = Suggestion(question, faults) if question and question.strip() else None
        return cls(header, phone, top, turns, desk, stop, asked)


def _conversation(place: _Places) -> None:
    fresh = st.session_state.get("fresh") == address.read("session")
    if fresh and not place.asked:
        _first_screen(place.top)
    host = open_host(Settings.read())
    chosen = scenario.panel(host)
    place.header.badge(host.on(chosen.model).model, icon=":material/memory:", color="gray")
    session = _session(host)
    if place.asked:
        _start(host, session, place.asked, chosen)
    window, newest = st.session_state.get("window", WINDOW), host.newest(session)
    views = host.views(session, limit=window)
    if views:
        place.header.space("stretch")
        place.header.button("New chat", icon=":material/add:", type="tertiary", on_click=address.new_session)
    if not views and not fresh:
        _first_screen(place.top)
    if len(views) == window:
        place.top.button("Show earlier", icon=":material/history:", on_click=_widen, type="tertiary")
    panel = Panel(place.desk, place.phone, full=chosen.detail == "full")
    if views:
        panel.draw(views[-1])
    else:
        panel.explain(agent for agent in host.kit.team.agents if agent != host.kit.team.root)
    budgets = {agent_id: agent.time_budget for agent_id, agent in host.kit.team.agents.items()}
    setting = Setting(host.kit.store, chosen.detail == "full", budgets)
    with place.turns:
        _turns(host, views, setting, panel, place.stop)
    _look(host, session, newest)


@st.fragment(run_every=LOOK)
def _look(host: "Host", session: Session, newest: str) -> None:
    """Draws the page anew once the session was asked something elsewhere."""
    if host.newest(session) != newest:
        st.rerun()


def _start(host: "Host", session: Session, asked: Suggestion, chosen: Scenario) -> None:
    """The one place where a turn begins."""
    faults = tuple(dict.fromkeys((*chosen.faults, *asked.faults)))
    host.start(asked.question, session, faults, pattern=chosen.pattern, cap=chosen.cap, model=chosen.model)
    st.session_state.pop("fresh", None)


def _session(host: "Host") -> Session:
    """The session of the page's address; a fresh one when that is somebody else's."""
    who = visitor(host)
    session = host.session(address.read("session"), who)
    if session is None:
        address.new_session()
        session = host.session(address.read("session"), who)
    assert session is not None
    return session


def _first_screen(place: DeltaGenerator) -> None:
    with place.container(key="first"):
        st.markdown("## What can I look up for you?")
        st.markdown(
            "Ask several things in one message: each part goes to the sub-agent that knows it, all work at the same time, "
            "and you get one answer, also when a part fails."
        )
        st.pills("Try one", list(SUGGESTIONS), key="suggestion", on_change=_suggested, label_visibility="collapsed")
        st.caption("The last two break a part on purpose, so that you see what the answer says then.")


def _suggested() -> None:
    picked = st.session_state.pop("suggestion", None)
    if picked:
        ask(SUGGESTIONS[picked].question, SUGGESTIONS[picked].faults)


def _widen() -> None:
    st.session_state["window"] = st.session_state.get("window", WINDOW) + WINDOW


def _turns(host: "Host", views: list[TurnView], setting: Setting, panel: Panel, stop: DeltaGenerator) -> None:
    running: list[tuple[Canvas, TurnView]] = []
    for age, view in zip(range(len(views), 0, -1), views, strict=True):
        canvas = Canvas(view.question, setting)
        canvas.draw(view, steps=age <= DEEP, again=age == 1)
        if view.running:
            running.append((canvas, view))
    for canvas, view in running:
        _follow(host, canvas, panel, view, stop)


def _follow(host: "Host", canvas: Canvas, panel: Panel, view: TurnView, stop: DeltaGenerator) -> None:
    """Draws a turn as it happens. A click is noticed at the next draw, so there is one every 200 ms even when all is silent."""
    key, halt = f"stop-{view.turn_id}", partial(host.cancel, view.turn_id)
    stop.button("Stop", icon=":material/stop_circle:", key=key, on_click=halt, shortcut="Esc")
    while view.running:
        batch = host.follow(view.turn_id, len(view.events))
        view = advance(view, batch.events)
        if batch.done and view.running:
            view = lost(view)
        if not view.running:
            stop.empty()
        canvas.draw(view, again=True)
        panel.draw(view)
