"""A trace as a waterfall, a bar for each span: it shows what ran at the same time, what was slow and what failed."""

from pathlib import Path

import streamlit as st
from streamlit.components.v2 import component

from kit.core.trace import Span, Trace
from kit.ui.canvas.drawing import axis_end
from kit.ui.shared.template import render
from kit.ui.shared.wording import name_of, span_name

SCRIPT = Path(__file__).with_name("waterfall.js")
LONGEST_REASON = 80
"""Characters of an error that stand under its bar; the span in full has all of them."""


def draw_waterfall(trace: Trace, selected: str) -> None:
    """Draws a trace with the `selected` span marked; a click on another one, or Enter, puts that one's id into the
    part `span` of the address."""
    key = f"waterfall-{trace.turn_id}"

    def choose() -> None:
        st.query_params["span"] = st.session_state[key].picked

    # The style of the page holds in it, so that both colour schemes do.
    list_of_spans = component("subagent-kit-waterfall", js=SCRIPT.read_text(), isolate_styles=False)
    list_of_spans(key=key, data=waterfall_html(trace, selected), on_picked_change=choose)


def waterfall_html(trace: Trace, selected: str) -> str:
    """Returns the spans as a list of buttons under an axis of seconds, each under what it is part of."""
    end = axis_end(max((span.ended for span in trace.spans), default=0.0))
    rows = [(depth, span, _name(span), _reason(span)) for depth, span in trace.rows()]
    return render("waterfall", rows=rows, end=end, selected=selected)


def _name(span: Span) -> str:
    """Returns the name of a row. Calls of several agents are named alike, so it says of which agent one is."""
    name = span_name(span)
    if span.agent and span.agent != span.name:
        name += f" ({name_of(span.agent)})"
    return name


def _reason(span: Span) -> str:
    """Returns why a span failed, cut to what a row has room for."""
    reason = (span.error or "").removeprefix("invocation: ").removeprefix("data: ")
    if len(reason) <= LONGEST_REASON:
        return reason
    return f"{reason[: LONGEST_REASON - 1]}…"
