"""Draws one turn in one place of a page, and on later draws only what changed: the same for live and stored turns."""

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.compose.page import PageSettings
from kit.core.errors import FaultError
from kit.core.fault import Kind
from kit.core.picture import strip_marks
from kit.ui.canvas.lane import now_of
from kit.ui.canvas.lane_box import OnBreak
from kit.ui.canvas.turn_lanes import TICK, TurnLanes
from kit.ui.chat.approval import draw_approval
from kit.ui.chat.chat_input import Question, ask
from kit.ui.chat.components import components_of, draw_components
from kit.ui.chat.feedback import remark, thumbs
from kit.ui.chat.growing_text import GrowingText
from kit.ui.chat.turn_panel import open_others, open_plan
from kit.ui.chat.user_message import draw_user_message
from kit.ui.shared.frame import draw_link
from kit.ui.shared.host import Host
from kit.ui.shared.place import Place
from kit.ui.shared.template import render
from kit.ui.shared.turn_facts import fault_lines, headline
from kit.ui.shared.turn_sentence import turn_sentence
from kit.ui.shared.turn_view import TurnView
from kit.ui.shared.visitor import is_operator
from kit.ui.shared.wording import literal, prose

WHOLE = 2_000
"""Characters of the sentence before an answer."""


class Canvas:
    """A place for one turn: question, lead, steps, how it was answered, answer, components."""

    def __init__(
        self,
        view: TurnView,
        host: Host,
        slot: DeltaGenerator,
        page: PageSettings,
        *,
        drawn: bool,
    ):
        """`drawn`: the question stands there already."""
        self._host = host
        self._page = page
        self._pictures = host.pictures.of(view.turn_id)
        if not drawn:
            with slot:
                draw_user_message(view.question, self._pictures)
        with slot.chat_message("assistant", avatar=":material/hub:"):
            self._chips = Place(st.empty())
            self._lead = Place(st.empty())
            self._lanes = TurnLanes(
                st.container(gap=None, key=f"canvas-{view.turn_id}"),
                host.kit.team.agents,
                page,
                _break_callback(host, view),
            )
            self._outcome = Place(st.container(key=f"outcome-{view.turn_id}").empty())
            self._answer = GrowingText(st.container(key=f"answer-{view.turn_id}"))
            self._components = st.empty()
            self._foot = Place(st.empty())

    def draw(self, view: TurnView, *, steps: bool = True, again: bool = False) -> None:
        """Brings the place up to date; `steps` is off for turns long past, `again` offers to ask once more."""
        now = now_of(view)
        faults = fault_lines(view)
        if faults:
            marks = render("faults", lines=faults)
            self._chips.html(marks)
        # Which may repeat anybody's words.
        preamble = bool(view.taken_on or view.running)
        self._lead.markdown(literal(view.lead, len(view.lead)) if preamble else prose(view.lead))
        has_lanes = steps and self._lanes.draw(view, now)
        self._draw_outcome(view, details=steps)
        self._answer.draw(view.answer or view.regret, whole=not view.running)
        if view.running:
            self._draw_clock(view, now, has_lanes=has_lanes)
        else:
            self._end(view, details=steps, again=again)

    def _draw_outcome(self, view: TurnView, *, details: bool) -> None:
        """Says before the answer how the turn stands: who answered, who failed, what is missing."""
        sentence = turn_sentence(view) if details else ""
        if view.running:
            # Once the answer has begun the page stands still for its reader (newest.js).
            if sentence:
                html = render("outcome", sentence=sentence, begun=bool(view.answer))
                self._outcome.html(html)
            return
        lines = [_badges(view)]
        if sentence:
            lines.append(literal(sentence, WHOLE))
        self._outcome.markdown("  \n".join(lines))

    def _draw_clock(self, view: TurnView, now: float, *, has_lanes: bool) -> None:
        """Says that the turn is at work, as long as its lanes do not."""
        words = ""
        if not has_lanes:
            words = f"{view.headline} · {now // TICK * TICK:.1f} s"
        self._foot.caption(words)

    def _end(self, view: TurnView, *, details: bool, again: bool) -> None:
        if details and components_of(view):
            with self._components.container():
                draw_components(view, self._host.renderers)
        with self._foot.slot.container():
            self._draw_foot(view, details=details, again=again)

    def _draw_foot(self, view: TurnView, *, details: bool, again: bool) -> None:
        with st.container(horizontal=True, vertical_alignment="center"):
            feedback = None if self._host.is_remote else thumbs(self._host, view.turn_id)
            open_plan(view)
            if not self._host.is_remote:
                open_others(view)
            # The newest turn's is in the panel.
            if not again:
                draw_link("traces", "Open trace", turn=view.turn_id)
            # Of an older turn the conversation has moved on: only the newest can be asked again.
            if again and view.status not in ("ok", "paused", "running"):
                question = Question(
                    text=strip_marks(view.question) if self._pictures else view.question,
                    pictures=self._pictures,
                )
                st.button(
                    "Ask again",
                    icon=":material/refresh:",
                    key=f"again-{view.turn_id}",
                    on_click=partial(ask, question),
                )
        draw_approval(self._host, view)
        if not view.saved:
            st.caption(
                "This turn is not saved yet: until it is, the conversation goes on without it."
            )
        if feedback is not None and details:
            remark(self._host, feedback)


def _badges(view: TurnView) -> str:
    """Says in markdown how a turn ended, whom it asked and how long it took."""
    badges = [headline(view).badge()]
    if view.asked_words:
        badges.append(f":gray-badge[{view.asked_words}]")
    if view.seconds is not None:
        badges.append(f":gray-badge[{view.seconds:.1f} s]")
    return " ".join(badges)


def _break_callback(host: Host, view: TurnView) -> OnBreak | None:
    """Returns what makes a sub-agent of a turn fail; None where this visitor or this process cannot."""
    if not view.running or view.elsewhere or host.is_remote or not is_operator():
        return None
    return partial(_break, host, view.turn_id)


def _break(host: Host, turn_id: str, agent: str, kind: Kind) -> None:
    try:
        host.break_agent(turn_id, agent, kind)
    except FaultError:
        # The turn ended while somebody reached for the button.
        st.toast("The turn was over before that.", icon=":material/info:")
