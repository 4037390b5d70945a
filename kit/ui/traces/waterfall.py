"""A trace as a waterfall, a bar for each span: it shows what ran at the same time, what was slow and what failed."""

from pathlib import Path

import streamlit as st
from streamlit.components.v2 import component

from kit.core.trace import Trace
from kit.ui.shared.template import render

SCRIPT = Path(__file__).with_name("waterfall.js")


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
    """Returns the spans as a list of buttons, each under what it is part of."""
    end = max((span.ended for span in trace.spans), default=0.0)
    return render("waterfall", rows=trace.rows(), end=end or 1.0, selected=selected)
