"""One span in full: its input and output, its time and cost, why it failed."""

import json
from collections.abc import Sequence
from html import escape

import streamlit as st

from kit.core.display.count import many
from kit.core.event import Event
from kit.core.timeout import NO_REMEDY, Diagnosis, diagnose
from kit.core.trace import Span, Trace
from kit.stores.model_request import ModelRequest
from kit.ui.shared.table import table_html
from kit.ui.shared.wording import dollars, label, literal, span_name, tag_html, took
from kit.ui.traces.model_request import draw_request

QUIET = (
    "text",
    "status",
    "status_line",
    "guarded",
    "call_dropped",
    "refused",
    "envelope",
    "agent_error",
    "component",
)
"""Kinds of events that are listed with their span; its start and end are the span itself."""
_STATUSES = {"error": ("failed", "bad"), "running": ("not finished", "busy"), "ok": ("ok", "good")}
LONGEST = 6_000
"""Characters of an input or output that are shown; the JSON file has all of them."""


def choice(span: Span) -> str:
    """Returns a span as one line of a list: its name, its agent, its time, whether it failed."""
    if span.agent and span.agent != span.name:
        whose = f" ({span.agent})"
    else:
        whose = ""
    return f"{span_name(span)}{whose} · {took(span.seconds)}" + (
        " · failed" if span.status == "error" else ""
    )


def draw_span(
    trace: Trace,
    span: Span,
    events: Sequence[Event],
    request: ModelRequest | None = None,
    note: str = "",
) -> None:
    """Draws everything known of a span; of a model call what the model was sent, with a `note` about its prompt."""
    st.html(_head(span))
    if span.error:
        st.error(literal(span.error), icon=":material/error:")
    if late := diagnose(trace, span):
        st.info(_late(late), icon=":material/timer_off:")
    if request is None:
        _text("Input", span.input)
    else:
        draw_request(request, note)
    _text("Output", span.output)
    if attributes := {
        name: value
        for name, value in span.attributes.items()
        if value not in (None, "", [], {}, ())
    }:
        with st.expander("Attributes", icon=":material/data_object:"):
            st.code(
                json.dumps(attributes, indent=2, ensure_ascii=False, default=str),
                language="json",
                wrap_lines=True,
            )
    if span_events := [
        event for event in events if event.span_id == span.id and event.kind in QUIET
    ]:
        with st.expander(many(len(span_events), "event"), icon=":material/list:"):
            st.html(log_html(span_events))


def log_html(events: Sequence[Event]) -> str:
    """Returns events as an HTML table, a row each, their fields as compact JSON; everything in it is escaped."""
    rows = (
        f"<tr><td>{event.at:.3f}</td><th>{escape(event.kind.replace('_', ' '))}</th>"
        f"<td>{escape(_body_json(event))}</td></tr>"
        for event in events
    )
    return table_html("Events", rows, ("Seconds", "Event", "What it says"), kind="log")


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
    if span.kind in ("model", "agent") and (span.usage.input_tokens or span.usage.output_tokens):
        figures["Tokens"] = f"{span.usage.input_tokens:,} in, {span.usage.output_tokens:,} out"
        figures["Cost"] = "price not known" if span.usage.cost is None else dollars(span.usage.cost)
    tag = tag_html(*_STATUSES[span.status]) + (
        tag_html("played, not called") if span.is_replay else ""
    )
    if span.agent and span.agent != span.name:
        whose = f" of {span.agent}"
    else:
        whose = ""
    rows = "".join(
        f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in figures.items()
    )
    return (
        f'<section class="span" data-span="{escape(span.id)}"><h3>{escape(span_name(span))} {tag}</h3>'
        f"<p>{span.kind}{escape(whose)}</p><dl>{rows}</dl></section>"
    )


def _late(late: Diagnosis) -> str:
    """Returns in markdown where a time-out came from, and what helps against it."""
    helps = "".join(
        f"\n- {literal(remedy.says)}: {remedy.where} `{', '.join(remedy.keys)}`"
        for remedy in late.remedies
    )
    return f"{literal(label(late.agent))} {literal(late.where)}. What helps:\n{helps or literal(NO_REMEDY)}"


def _text(name: str, text: str) -> None:
    if not text:
        return
    st.caption(name)
    if len(text) <= LONGEST:
        cut = text
    else:
        cut = text[:LONGEST] + f"\n… {len(text) - LONGEST:,} more characters in the JSON file"
    # Not st.code: a box that scrolls has to be within reach of the keyboard.
    st.html(f'<pre class="said" tabindex="0" role="group" aria-label="{name}">{escape(cut)}</pre>')
