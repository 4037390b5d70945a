"""A conversation on the page: where a turn begins, the turns so far, and the running one as it happens."""

from collections.abc import Mapping, Sequence
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.core.context import Session
from kit.metrics.breakages import breakages
from kit.settings import Settings
from kit.ui.chat import scenario
from kit.ui.chat.chat_input import Question, put_back, waiting
from kit.ui.chat.layout import Places, next_slot
from kit.ui.chat.scenario import Scenario
from kit.ui.chat.turn_canvas import Canvas
from kit.ui.chat.turn_panel import Panel
from kit.ui.shared import address
from kit.ui.shared.allowance import LimitReached
from kit.ui.shared.frame import open_host, report_errors
from kit.ui.shared.host import Host
from kit.ui.shared.turn_view import TurnView
from kit.ui.shared.visitor import is_operator, visitor
from kit.ui.shared.wording import day_of_data, literal, speaker_words

WINDOW = 10
"""Turns shown at first, and added by each "Show earlier"."""
DEEP = 3
"""Newest turns that are shown with their steps and their trace: replaying more makes a long session slow."""
LOOK = 4.0
"""Seconds between two looks of an idle tab for a question asked in another one."""


def converse(layout: Places, question: Question | None, *, fresh: bool) -> None:
    """Starts a turn for the question, and draws the session of the address; `fresh` when it has no turn yet."""
    host = open_host(Settings.read())
    choices = scenario.panel(host, layout.scenario)
    counter = st.sidebar.empty()
    _draw_counter(counter, host)
    _draw_badges(layout, host, choices)
    session = _session(host)
    line = waiting()
    earlier = len(line)
    slot_of_question = next_slot() + earlier
    if question:
        line.append(question)
    if line and not host.answering(session):
        first = line.pop(0)
        with report_errors(layout.stop):
            _start(host, session, first, choices)
    waits = question is not None and question in line
    window = st.session_state.get("window", WINDOW)
    newest = host.newest(session)
    views = host.views(session, limit=window)
    if not views and not fresh:
        layout.first_screen()
    layout.introduce(_introduction(host, choices))
    layout.purpose.caption(scenario.purpose(host, choices))
    _draw_buttons(layout, turns=len(views), window=window)
    panel = _draw_panel(layout, host, views)
    slots = _slots(views)
    if _question_stands_elsewhere(question, waits, slot_of_question, slots, earlier):
        # Another tab has asked as well: the question stands in that turn's place.
        st.rerun()
    canvases: dict[str, Canvas] = {}
    for view, number in zip(views, slots.values(), strict=True):
        canvases[view.turn_id] = Canvas(
            view,
            host,
            layout.slot(number),
            layout.page,
            drawn=bool(question) and not waits and number == slot_of_question,
        )
    for age, view in zip(range(len(views), 0, -1), views, strict=True):
        canvases[view.turn_id].draw(view, steps=age <= DEEP, again=age == 1)
    if waits:
        # What was just asked stands there already.
        layout.draw_waiting(line[:-1])
        layout.say_it_waits(slot_of_question)
    else:
        layout.draw_waiting(line)
    for view in views:
        if view.running:
            _follow(host, canvases[view.turn_id], panel, view, layout.stop)
            _draw_counter(counter, host)
    if line:
        # Its turn has ended, and the next run asks the first one.
        st.rerun()
    _look(host, session, newest)


def _draw_badges(layout: Places, host: Host, choices: Scenario) -> None:
    """Says in the header which model answers, and what day it is for models and services."""
    model = host.words_of(choices.model)
    layout.header.badge(model, icon=":material/memory:", color="gray")
    # The day of a service is its own.
    if host.is_remote:
        return
    layout.header.badge(
        day_of_data(host.kit.today) or host.kit.today,
        icon=":material/today:",
        color="gray",
        help="Today, for the models and the services. Traces have the time of the clock.",
    )


def _draw_counter(slot: DeltaGenerator, host: Host) -> None:
    """Says to operators what became of all that was broken on purpose; nothing before anything was."""
    if host.is_remote or not is_operator():
        return
    counts = breakages(host.kit.store)
    if counts.broken or counts.leaked:
        slot.caption(f"So far: {counts}.")


def _introduction(host: Host, choices: Scenario) -> str:
    """Says who asks and who answers."""
    principal = visitor(host)
    asks = f"You are {literal(principal.user_id)} of {literal(principal.tenant_id)}."
    return f"{asks} {speaker_words(host.words_of(choices.model))}"


def _draw_buttons(layout: Places, turns: int, window: int) -> None:
    """Offers a new chat where this one has begun, and earlier turns where there may be some."""
    if turns:
        layout.header.space("stretch")
        layout.header.button(
            "New chat", icon=":material/add:", type="tertiary", on_click=address.new_session
        )
    if turns == window:
        layout.top.button(
            "Show earlier", icon=":material/history:", on_click=_widen, type="tertiary"
        )


def _draw_panel(layout: Places, host: Host, views: Sequence[TurnView]) -> Panel:
    """Draws beside the chat what its newest turn did; before the first one, who can be asked."""
    panel = Panel(layout.desk, layout.phone)
    if views:
        panel.draw(views[-1])
    else:
        panel.explain(agent for agent in host.kit.team.agents if agent != host.kit.team.root)
    return panel


def _question_stands_elsewhere(
    question: Question | None, waits: bool, slot: int, slots: Mapping[str, int], earlier: int
) -> bool:
    """Whether the question was drawn in a place that now belongs to a turn of another tab."""
    if question is None or not slots:
        return False
    newest_slot = max(slots.values())
    if waits:
        return slot != newest_slot + 1 + earlier
    return slot in slots.values() and slot != newest_slot


@st.fragment(run_every=LOOK)
def _look(host: Host, session: Session, newest: str) -> None:
    """Draws the page anew once the session has a turn that was asked elsewhere."""
    if host.newest(session) != newest:
        st.rerun()


def _start(host: Host, session: Session, question: Question, choices: Scenario) -> None:
    """Starts a turn; the page starts none anywhere else."""
    faults: tuple[str, ...] = ()
    if is_operator():
        faults = tuple(dict.fromkeys((*choices.faults, *question.faults)))
    try:
        host.start(
            question.text,
            session,
            faults,
            pattern=choices.pattern,
            cap=choices.cap,
            model=choices.model,
            images=question.pictures,
        )
    except LimitReached as error:
        put_back(question.text, str(error))
    st.session_state.pop("fresh", None)


def _session(host: Host) -> Session:
    """Returns the session of the page's address; a fresh one when that is somebody else's."""
    session = host.session(address.read("session"), visitor(host))
    if session is None:
        address.new_session()
        return _session(host)
    return session


def _slots(views: Sequence[TurnView]) -> dict[str, int]:
    """Returns the number of each turn's place: one that was shown keeps its own, also when older ones go."""
    # Earlier turns that come in above must not move the others: each would be drawn anew, and the page would jump.
    numbers: dict[str, int] = st.session_state.get("slots", {})
    if views:
        first = numbers.get(views[0].turn_id, 0)
    else:
        first = 0
    st.session_state["slots"] = {view.turn_id: first + number for number, view in enumerate(views)}
    return st.session_state["slots"]


def _widen() -> None:
    st.session_state["window"] = st.session_state.get("window", WINDOW) + WINDOW


def _follow(host: Host, canvas: Canvas, panel: Panel, view: TurnView, stop: DeltaGenerator) -> None:
    """Draws a turn as it happens. A click is noticed at the next draw, so there is one every 200 ms
    even when all is silent."""
    key = f"stop-{view.turn_id}"
    halt = partial(host.cancel, view.turn_id)
    stop.button("Stop", icon=":material/stop_circle:", key=key, on_click=halt, shortcut="Esc")
    while view.running:
        view = host.advance(view)
        if not view.running:
            stop.empty()
        canvas.draw(view, again=True)
        panel.draw(view)
