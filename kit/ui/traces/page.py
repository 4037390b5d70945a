"""The page Traces: the visitor's turns, and one of them in full, its routing decision first."""

import time

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.core.bodies.turn import Fork, PlanTaken, TurnStarted
from kit.core.context import Principal
from kit.core.display.count import many
from kit.core.record import TurnRecord
from kit.core.trace import Span, Trace, critical_path, failures, slowest
from kit.metrics.judgement import judgements
from kit.stores.model_request import model_request
from kit.stores.recall import repeated_turn
from kit.ui.canvas.drawing import axis_end, canvas_html
from kit.ui.canvas.lane import lanes_of, now_of
from kit.ui.canvas.replay import draw_replay
from kit.ui.shared import address
from kit.ui.shared.frame import draw_link, with_store
from kit.ui.shared.host import Host
from kit.ui.shared.template import render
from kit.ui.shared.turn_facts import answer_text, fault_lines, headline
from kit.ui.shared.turn_fold import stored_view
from kit.ui.shared.turn_sentence import turn_sentence
from kit.ui.shared.turn_view import TurnView
from kit.ui.shared.visitor import visitor
from kit.ui.shared.wording import (
    day_of_data,
    label,
    literal,
    model_words,
    moment,
    prose,
    span_name,
    took,
)
from kit.ui.traces.conversation_list import draw_conversation, draw_conversations, leave
from kit.ui.traces.export import export
from kit.ui.traces.fork import draw_fork
from kit.ui.traces.routing_decision import decision_html
from kit.ui.traces.span import draw_span, log_html
from kit.ui.traces.turn_list import draw_turns
from kit.ui.traces.waterfall import draw_waterfall

LISTS = ("Turns", "Conversations")
WHOLE = 2_000
"""Characters of the sentence that says what became of a turn."""
KEY = (
    "Purple: the orchestrator decides or writes. Pale within a bar: a call of a tool. "
    "Dotted: it has answered, and the answer to you is not written yet."
)
"""What the shapes of the canvas mean."""
LOOK = 1.0
"""Seconds between two looks at a turn that runs."""


@with_store
def page(host: Host, top: DeltaGenerator) -> None:
    """Draws the list, or the turn the address names."""
    principal = visitor(host)
    turn_id = address.read("turn")
    turn = None
    if turn_id:
        turn = host.kit.store.turn(turn_id, principal)
    if turn is not None:
        _draw_turn(host, turn)
        return
    if turn_id:
        sentence = (
            "There is no such trace of yours. Choose one below, or ask something in the chat."
        )
        top.warning(sentence, icon=":material/search_off:")
    _list(host, principal)


def _list(host: Host, principal: Principal) -> None:
    store = host.kit.store
    session = address.read("conversation")
    st.markdown("## Traces")
    if not store.turns(tenant_id=principal.tenant_id, user_id=principal.user_id, limit=1):
        st.markdown(
            "Every turn leaves a trace here. There is none yet: ask something in the chat first."
        )
        draw_link("chat", "Go to the chat")
        return
    key = "traces-list"
    shown = st.segmented_control(
        "Show",
        LISTS,
        default=LISTS[bool(session)],
        key=key,
        required=True,
        label_visibility="collapsed",
        on_change=leave,
    )
    if shown == "Conversations" and not session:
        draw_conversations(store, principal)
        return
    if session:
        draw_conversation(store, principal, session)
    team = host.kit.team
    draw_turns(store, principal, [agent for agent in team.agents if agent != team.root])


def _back() -> None:
    for name in ("turn", "span", "at"):
        st.query_params.pop(name, None)


@st.fragment(run_every=LOOK)
def _look(host: Host, turn: TurnRecord, event_count: int, end: float) -> None:
    """Has the page drawn anew once more has happened in a turn that runs, or its bars have reached the `end` of their
    axis; until then they grow by themselves."""
    batch = host.follow(turn.id, event_count, timeout=0.0)
    if batch.events or batch.done or time.time() - turn.started_at > end:
        st.rerun()


def _draw_turn(host: Host, turn: TurnRecord) -> None:
    """Draws a trace as far as it has come."""
    batch = host.follow(turn.id, timeout=0.0)
    view = stored_view(turn, batch.events)
    trace = view.trace
    now = now_of(view)
    if not batch.done:
        _look(host, turn, len(batch.events), axis_end(now))
    _heading(host, turn, view)
    if not trace.spans:
        sentence = (
            "Nothing is stored of this turn beside its question: its process ended before "
            "it did. Ask it again in the chat."
        )
        st.info(sentence, icon=":material/info:")
        return
    with st.container(gap=None, key=f"canvas-{turn.id}"):
        _canvas(view, now)
    st.html(decision_html(view))
    st.markdown("#### Timeline")
    _timeline(host, turn, trace, view)
    with st.expander(f"All {many(len(view.events), 'event')}", icon=":material/list:"):
        st.html(log_html(view.events))
    with st.expander("The answer as it was read", icon=":material/chat:"):
        st.markdown(prose(answer_text(view)))


def _canvas(view: TurnView, now: float) -> None:
    """Draws who worked when, and plays it again; the address may name the moment to open at."""
    st.html(canvas_html(lanes_of(view), axis_end(now), "What each did", now=now))
    if not view.running and view.steps:
        draw_replay(st.empty(), view, address.read("at"))
    st.caption(KEY)


def _heading(host: Host, turn: TurnRecord, view: TurnView) -> None:
    settings = host.kit.settings
    with st.container(horizontal=True, vertical_alignment="center", key="trace-head"):
        st.button("All traces", icon=":material/arrow_back:", type="tertiary", on_click=_back)
        st.space("stretch")
        origin = repeated_turn(turn.session_id)
        if origin:
            draw_link("traces", "The first trace", turn=origin)
        else:
            draw_link("chat", "Conversation", session=turn.session_id)
        for plan in view.bodies(PlanTaken):
            draw_link("plans", "Plan", plan=plan.plan_id)
        ids = ",".join(filter(None, [origin, turn.id]))
        draw_link("compare", "Ask again, or compare", turns=ids)
        st.download_button(
            "JSON",
            export(turn, view.events),
            f"trace-{turn.id}.json",
            "application/json",
            icon=":material/download:",
            type="tertiary",
            on_click="ignore",
        )
        if settings.has_opik:
            from kit.sinks.opik import trace_url

            url = trace_url(turn.id, view.trace.started_at or turn.started_at, settings.opik_url)
            st.link_button("Open in Opik", url, icon=":material/open_in_new:", type="tertiary")
    st.markdown(f"### {literal(turn.message)}")
    badges = headline(view).badge()
    if origin:
        verb = "Asked again"
        if view.bodies(Fork):
            verb = "Forked"
        badges += f" :blue-badge[{verb}: first as {origin[-8:]}]"
    for start in view.bodies(TurnStarted):
        for card_id, version in start.versions.items():
            badges += f" :blue-badge[{literal(label(card_id))} {literal(version)}]"
    sentence = literal(turn_sentence(view), WHOLE)
    st.markdown(f"{badges} {sentence}")
    st.caption(
        f"The trace of one question: all that happened while it was answered. {_summary(turn, host.kit.today)}"
    )
    if view.faults:
        lines = fault_lines(view)
        st.html(render("faults", lines=lines))


def _summary(turn: TurnRecord, today: str) -> str:
    """Returns what made a turn, and when, in one line of markdown."""
    made_by = filter(None, (label(turn.pattern), model_words(turn.model)))
    parts = [literal(", ".join(made_by)), moment(turn.started_at)]
    if day := day_of_data(today):
        # An offer that the answer names is not over where its data stands still.
        parts.append(day)
    return " · ".join(parts)


def _waits(trace: Trace) -> list[str]:
    """Returns what a turn waited for, one after the other: an agent's time with what it is made up of in brackets."""
    root = trace.spans[0].id
    names: list[str] = []
    shares: list[list[str]] = []
    for step in critical_path(trace):
        words = f"{span_name(step)} {took(step.seconds)}"
        if step.parent_id == root:
            names.append(words)
            shares.append([])
        elif shares:
            shares[-1].append(words)
    waits: list[str] = []
    for name, of_step in zip(names, shares, strict=True):
        waits.append(f"{name} ({', '.join(of_step)})" if of_step else name)
    return waits


def _timeline(host: Host, turn: TurnRecord, trace: Trace, view: TurnView) -> None:
    spans = {span.id: span for _, span in trace.rows()}
    failed = None
    for failure in failures(trace):
        # A turn fails with its parts: it is the part that a reader looks for.
        if failure.kind != "turn":
            failed = failure
            break
    late = slowest([span for span in trace.spans if span.kind in ("model", "tool")])
    span_id = address.read("span")
    span = spans.get(span_id) or failed or late or trace.spans[0]
    st.caption("What the turn waited for: " + literal(" → ".join(_waits(trace))))
    chart_column, detail = st.columns([3, 2], gap="medium")
    with chart_column:
        draw_waterfall(trace, span.id)
    with detail.container(border=True, key="span-detail"):
        request = None
        if span.kind == "model":
            request = model_request(host.kit.store, turn, span.id, view.events)
        draw_span(trace, span, view, request)
        _draw_judgements(host, turn, span, view)
        draw_fork(host, turn, span, request, view.faults)


def _draw_judgements(host: Host, turn: TurnRecord, span: Span, view: TurnView) -> None:
    """Draws what a judge said of a span after the turn had ended: of cards that share their sessions alone."""
    if not any(start.versions for start in view.bodies(TurnStarted)):
        return
    of_session = host.documents(
        lambda stores: judgements(stores.events, turn.tenant_id, turn.session_id)
    )
    for judgement in of_session:
        if (judgement.turn_id, judgement.span_id) == (turn.id, span.id):
            words = literal(f"Judged by {judgement.judge}: {judgement.why}")
            st.markdown(f":gray-badge[:material/gavel: {judgement.score:.0%}] {words}")
