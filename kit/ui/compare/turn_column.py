"""One turn among others that it is compared with: a place that is brought up to date, the same for
stored and live turns."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.core.display.count import many
from kit.ui.canvas.drawing import canvas_html
from kit.ui.canvas.lane import lanes_of
from kit.ui.shared.frame import draw_link
from kit.ui.shared.place import Place
from kit.ui.shared.template import render
from kit.ui.shared.turn_facts import answer_text, facts, headline
from kit.ui.shared.turn_view import TurnView
from kit.ui.shared.wording import is_simulated, prose


class TurnColumn:
    """Head, canvas, answer and facts of a turn, where it is made; in a row, answer and facts have
    a `body` elsewhere and the canvas shows bars alone."""

    def __init__(
        self,
        view: TurnView,
        label: str,
        *,
        note: str = "",
        body: DeltaGenerator | None = None,
        axis: bool = True,
    ):
        """`label` names the turn on the page; `note` says where it comes from; `axis`: with its ticks."""
        self.label = label
        self._note = note
        self._full = body is None
        self._axis = axis
        self._head = Place(st.empty())
        self._canvas = Place(st.empty())
        with body or st.container():
            self._answer = Place(st.empty())
            self._facts = Place(st.empty())
            draw_link("traces", "Open trace", turn=view.turn_id)

    def draw(self, view: TurnView, end: float, now: float) -> None:
        """Brings it up to date. `end`: seconds of the axis that it shares with others; `now`:
        seconds since the turn began."""
        lanes = lanes_of(view)
        self._head.html(self._head_html(view, now))
        # Bars that work grow by themselves: only other lanes, or another axis, are sent.
        if self._canvas.is_new((*lanes, end)):
            label = f"Timeline of {self.label}"
            canvas = canvas_html(lanes, end, label, now=now, full=self._full, axis=self._axis)
            self._canvas.slot.html(canvas)
        self._answer.markdown(prose(answer_text(view)))
        self._facts.html(render("turn_facts", facts=facts(view)))

    def _head_html(self, view: TurnView, now: float) -> str:
        if view.running:
            figures = [f"{now:.1f} s"]
        elif view.seconds is None:
            figures = [f"{now:.2f} s"]
        else:
            figures = [f"{view.seconds:.2f} s"]
        if is_simulated(view.model):
            figures.append("simulated")
        elif view.tokens is not None:
            figures += [many(view.tokens, "token"), view.cost_words]
        return render(
            "turn_head", label=self.label, ending=headline(view), figures=figures, note=self._note
        )
