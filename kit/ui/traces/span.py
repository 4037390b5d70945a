"""One span in full: its input and output, its time and cost, why it failed."""

import json
from collections.abc import Sequence
from typing import Any

import streamlit as st

from kit.core.event import Event
from kit.core.timeout import NO_REMEDY, Diagnosis, diagnose
from kit.core.trace import Span, Trace
from kit.stores.model_request import ModelRequest
from kit.ui.shared.tag import Tag
from kit.ui.shared.template import render
from kit.ui.shared.turn_view import TurnView
from kit.ui.shared.wording import (
    beginning,
    cost_in_words,
    label,
    literal,
    tokens_in_words,
    took,
)
from kit.ui.traces.model_request import draw_request

_STATUSES = {
    "error": Tag(text="failed", tone="bad"),
    "running": Tag(text="not finished", tone="busy"),
    "ok": Tag(text="ok", tone="good"),
}
LONGEST = 6_000
"""Characters of an input or output that are shown; the JSON file has all of them."""


def draw_span(
    trace: Trace,
    span: Span,
    view: TurnView,
    request: ModelRequest | None = None,
) -> None:
    """Draws everything known of a span; of a model call what the model was sent."""
    st.html(_head(span))
    if span.error:
        st.error(literal(span.error), icon=":material/error:")
    diagnosis = diagnose(trace, span)
    # Nobody has to mend what was made to fail on purpose.
    if diagnosis and not any(fault.startswith(f"{span.agent}=") for fault in view.faults):
        st.info(_diagnosis_words(diagnosis), icon=":material/timer_off:")
    if request is None:
        _text("Input", span.input)
    else:
        draw_request(request)
    _text("Output", span.output)
    attributes: dict[str, Any] = {}
    for name, value in span.attributes.items():
        if value not in (None, "", [], {}, ()):
            attributes[name] = value
    if attributes:
        text = json.dumps(attributes, indent=2, ensure_ascii=False, default=str)
        with st.expander("Attributes", icon=":material/data_object:"):
            st.code(text, language="json", wrap_lines=True)


def log_html(events: Sequence[Event]) -> str:
    """Returns events as an HTML table, a row each, their fields as compact JSON."""
    return render("log", rows=[(event, _body_json(event)) for event in events])


def _body_json(event: Event) -> str:
    body = event.body.model_dump(mode="json", exclude={"kind"}, exclude_defaults=True)
    text = json.dumps(body, ensure_ascii=False, default=str)
    if len(text) <= 400:
        return text
    return text[:399] + "…"


def _head(span: Span) -> str:
    figures = {"Took": took(span.seconds), "Began": f"{span.started:.3f} s"}
    if span.ttft is not None:
        figures["First token"] = took(span.ttft)
    usage = span.usage
    has_usage = usage.input_tokens or usage.output_tokens or usage.untold_costs
    if span.kind in ("model", "agent") and has_usage:
        figures["Tokens"] = tokens_in_words(usage)
        figures["Cost"] = cost_in_words(usage)
    return render("span", span=span, status=_STATUSES[span.status], figures=figures)


def _diagnosis_words(diagnosis: Diagnosis) -> str:
    """Returns in markdown where a time-out came from, and what helps against it."""
    helps = ""
    for remedy in diagnosis.remedies:
        helps += f"\n- {literal(remedy.says)}: {remedy.where} `{', '.join(remedy.keys)}`"
    where = f"{literal(label(diagnosis.agent))} {literal(diagnosis.where)}"
    return f"{where}. What helps:\n{helps or literal(NO_REMEDY)}"


def _text(name: str, text: str) -> None:
    if text:
        st.caption(name)
        # Not st.code: a box that scrolls has to be within reach of the keyboard.
        st.html(render("said", label=name, text=beginning(text, LONGEST, "the JSON file")))
