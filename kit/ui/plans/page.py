"""The page Plans: the visitor's plans, and one of them in full, live while it is at work."""

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.core.context import Principal
from kit.core.display.count import many
from kit.core.documents.document import Plan
from kit.core.errors import KitError
from kit.core.fault import Fault
from kit.patterns.plan_execute import PLAN, PLAN_EXECUTE
from kit.planning.plan import OVER, declined_steps
from kit.ui.plans.plan_words import (
    can_go_on,
    history_html,
    progress_of,
    reason_of,
    sentence_of,
    state_of,
    steps_html,
)
from kit.ui.plans.step_picture import picture_html
from kit.ui.shared import address
from kit.ui.shared.frame import draw_link, with_host
from kit.ui.shared.host import Host
from kit.ui.shared.selection import draw_rows
from kit.ui.shared.template import health_html, render
from kit.ui.shared.turn_facts import fault_lines
from kit.ui.shared.visitor import is_operator, visitor
from kit.ui.shared.wording import is_simulated, label, literal, prose, simulated_words

LOOK = Path(__file__).with_name("page.css")
NEWEST = 100
"""Plans that are listed."""
TICK = 0.7
"""Seconds between two looks at a plan that is at work."""


@with_host
def page(host: Host, top: DeltaGenerator) -> None:
    """Draws the list, or the plan that the address names."""
    st.html(LOOK)
    principal = visitor(host)
    plan_id = address.read("plan")
    plan = None
    if plan_id:
        plan = host.plan(plan_id, principal)
    if plan is not None:
        _draw_plan(host, principal, plan)
        return
    if plan_id:
        top.warning(
            "There is no such plan of yours. Choose one below, or ask for one in the chat.",
            icon=":material/search_off:",
        )
    _list(host, principal)
    _draw_examples(host)


def _list(host: Host, principal: Principal) -> None:
    st.markdown("## Plans")
    plans = host.plans(principal, NEWEST)
    if not plans:
        _nothing(host)
        return
    rows: list[dict[str, Any]] = []
    ids: list[str] = []
    for plan in plans:
        rows.append(_row(plan, host.holds(plan)))
        ids.append(plan.plan_id)
    words = "Plans, newest first; choose one to open it"
    draw_rows(rows, ids, "plan", f"plans-{len(plans)}", words)
    st.caption(f"{many(len(plans), 'plan')}, the newest first. Choose one to open it.")
    simulated = simulated_words(host.models_of(plans))
    if simulated:
        st.caption(simulated)
    health = host.health(principal)
    if health is not None:
        with st.expander("How plans do", icon=":material/monitor_heart:"):
            st.html(health_html(health))
            st.caption("Over all your plans that ended; shares with intervals at 95 %.")


def _nothing(host: Host) -> None:
    st.markdown(
        "A plan is a task in steps: a planner writes them, they are checked before the first one runs, "
        "and the answer is made of what they find."
    )
    if host.kit.deck.settings.planning is None:
        name = literal(host.kit.deck.name)
        st.markdown(f"The deck {name} has no planner, so its turns are not run as plans.")
        st.markdown(
            "With `KIT_DECK=cards/outlets` the app starts on the deck outlets, which has one."
        )
        return
    st.markdown(
        "A message can be run as a plan: choose the pattern “Plan execute” in the chat's scenario, and ask."
    )
    draw_link("chat", "Go to the chat", pattern=PLAN_EXECUTE.name)


def _draw_examples(host: Host) -> None:
    """Draws the requests that the stand-in can plan, which knows no others; nothing where a model plans."""
    planning = host.kit.deck.settings.planning
    if planning is None or not is_simulated(host.words_of(None)):
        return
    with st.expander("What can be planned without a language model", icon=":material/list:"):
        lines = [f"- {literal(example.request)}" for example in planning.examples]
        st.markdown("\n".join(lines))
        st.caption(
            "A word in braces stands for one of yours, such as active or Rivermont; what is in brackets may be missing."
        )


def _row(plan: Plan, is_held: bool) -> dict[str, Any]:
    return {
        "Task": " ".join(plan.original_task.split()),
        "State": state_of(plan, is_held).text,
        "Progress": progress_of(plan),
        "Begun": datetime.fromtimestamp(plan.created_at).strftime("%d %b, %H:%M:%S"),
    }


def _draw_plan(host: Host, principal: Principal, plan: Plan) -> None:
    if plan.status in OVER:
        _draw(host, principal, plan.plan_id)
    else:
        st.fragment(_draw, run_every=TICK)(host, principal, plan.plan_id)


def _draw(host: Host, principal: Principal, plan_id: str) -> None:
    """Draws a plan as far as it has come."""
    plan = host.plan(plan_id, principal)
    # Its user was forgotten while the page was open.
    if plan is None:
        st.rerun()
    is_held = host.holds(plan)
    outputs = host.outputs(plan)
    planner, executor = _roles(host)
    _heading(host, plan, is_held, sentence_of(plan, is_held, planner, executor, outputs))
    if plan.status in OVER:
        _draw_faults(host, principal, plan)
    events = host.plan_events(principal, plan_id)
    if plan.steps:
        with st.container(key="plan-picture"):
            st.html(picture_html(plan, events, is_held, planner))
    # Of one that waits for its user it is what they are asked, and of one that they stopped what it may have done.
    if plan.status in (*OVER, "paused", "cancelled"):
        title = "It asks you" if plan.status == "paused" else "Answer"
        _draw_answer(title, host.plan_answer(plan))
    if plan.steps:
        st.markdown("**Steps, and what each found**")
        st.html(steps_html(plan, outputs, events, is_held, executor=executor))
    history = history_html(plan, events)
    if history:
        st.markdown("#### Planned anew")
        st.html(history)


def _draw_faults(host: Host, principal: Principal, plan: Plan) -> None:
    """Says what was broken on purpose; nothing where nothing was."""
    view = host.view(plan.plan_id.removeprefix(PLAN), principal)
    lines = () if view is None else fault_lines(view)
    if lines:
        st.html(render("faults", lines=lines))


def _roles(host: Host) -> tuple[str, str]:
    """Returns who plans and who carries out steps, by the names that people read."""
    planning = host.kit.deck.settings.planning
    if planning is None:
        return "A planner", "an executor"
    return label(planning.planner), label(planning.executor)


def _draw_answer(title: str, answer: str) -> None:
    if answer:
        st.markdown(f"**{title}**")
        with st.container(key="plan-answer"):
            st.markdown(prose(answer))


def _heading(host: Host, plan: Plan, is_held: bool, sentence: str) -> None:
    turn_id = plan.plan_id.removeprefix(PLAN)
    with st.container(horizontal=True, vertical_alignment="center", key="plan-head"):
        if st.button("All plans", icon=":material/arrow_back:", type="tertiary", on_click=_back):
            st.rerun()
        st.space("stretch")
        draw_link("chat", "Chat", session=plan.session_id)
        draw_link("traces", "Trace", turn=turn_id)
        _buttons(host, plan, is_held)
        if plan.status in OVER or declined_steps(plan):
            _draw_ways_on(host)
    st.markdown(f"### {literal(plan.original_task)}")
    st.markdown(f"{state_of(plan, is_held).badge()} {literal(sentence)}")
    simulated = simulated_words(host.models_of([plan]))
    st.caption(" · ".join(filter(None, (literal(progress_of(plan)), simulated))))
    if plan.failure:
        planner, _ = _roles(host)
        st.markdown(literal(reason_of(plan, planner)))
    error = st.session_state.pop(f"plan-error-{plan.plan_id}", None)
    if error:
        st.error(literal(error))


def _draw_ways_on(host: Host) -> None:
    """Leads to the chat, to ask for another plan: as it comes, or with an executor that fails."""
    pattern = PLAN_EXECUTE.name
    planning = host.kit.deck.settings.planning
    if planning is not None and is_operator():
        fault = str(Fault(where=planning.executor, kind="raise"))
        words = "Break a step"
        draw_link("chat", words, ":material/bolt:", pattern=pattern, fault=fault)
    draw_link("chat", "Another plan", pattern=pattern)


def _buttons(host: Host, plan: Plan, is_held: bool) -> None:
    # One that its user said no to could only say so again.
    if plan.status in OVER or declined_steps(plan):
        return
    if can_go_on(plan, is_held):
        go_on = partial(_resume, host, plan.plan_id)
        st.button(
            "Go on", icon=":material/play_arrow:", key="plan-resume", on_click=go_on, type="primary"
        )
    elif plan.status == "paused":
        st.caption("Answer its question in the conversation")
    elif plan.status == "needs_key":
        st.caption("It goes on once a request brings the key of its skill service")
    else:
        if not host.runs(plan.holder or ""):
            st.caption("At work in another process")
        st.button(
            "Stop",
            icon=":material/stop_circle:",
            key="plan-stop",
            on_click=host.stop_plan,
            args=(plan,),
        )


def _resume(host: Host, plan_id: str) -> None:
    try:
        host.go_on(plan_id, visitor(host))
    except KitError as error:
        st.session_state[f"plan-error-{plan_id}"] = str(error)


def _back() -> None:
    st.query_params.pop("plan", None)
