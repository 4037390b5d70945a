"""A stored plan in the words and the HTML of its page."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from kit.core.display.count import enumeration, many
from kit.core.documents.document import WAITING, AgentEvent, Plan, PlanStep, Replan
from kit.planning.output_words import Wording, is_empty, is_ids, size_of, words_of
from kit.planning.plan import OVER, complete_steps, declined_steps
from kit.ui.shared.tag import Tag
from kit.ui.shared.template import render, table_html

Row = tuple[str, ...]

STATES = {
    "pending": Tag(text="waiting"),
    "planning": Tag(text="being planned", tone="busy"),
    "executing": Tag(text="at work", tone="busy"),
    "replanning": Tag(text="being planned anew", tone="warn"),
    "complete": Tag(text="done", tone="good"),
    "failed": Tag(text="failed", tone="bad"),
    "uncertain": Tag(text="nobody knows", tone="bad"),
    "cancelled": Tag(text="stopped by you", tone="warn"),
    "paused": Tag(text="waits for your answer", tone="warn"),
    "needs_key": Tag(text="waits for a key", tone="warn"),
    "declined": Tag(text="you said no", tone="warn"),
}
"""State of a plan or a step -> its words."""
IDLE = Tag(text="interrupted", tone="warn")
"""A plan that was at work when its process ended, and that nobody works on."""
REASONS = {
    "exhausted": "It was planned anew three times, and failed again.",
    "budget": "What it may take was used up.",
    "uncertain": "A skill was called whose end is not known. Whether it has acted, nobody knows, "
    "and it is not called again.",
}
LONGEST = 1_500
"""Characters of a value that the page shows."""
GLANCE = 4
"""Rows of what a step gave that are shown beside its title."""
WIDEST = 160
"""Characters of such a line."""


def state_of(plan: Plan, is_held: bool) -> Tag:
    """Returns the state of a plan in words; one that nobody holds is interrupted, if nobody is waited for."""
    if declined_steps(plan):
        return STATES["declined"]
    if is_held or plan.status in (*OVER, *WAITING):
        return STATES[plan.status]
    return IDLE


def can_go_on(plan: Plan, is_held: bool) -> bool:
    """Whether its user can let a plan go on without saying anything more; after a no it could only say that again."""
    state = state_of(plan, is_held)
    return state in (STATES["cancelled"], IDLE)


def reason_of(plan: Plan, planner: str) -> str:
    """Returns why a plan failed, in a sentence; empty where it did not."""
    reason = plan.failure_reason.removeprefix("infeasible: ")
    reason = reason[:1].upper() + reason[1:]
    if plan.failure_kind == "infeasible":
        return f"{planner} says: {reason}"
    return REASONS.get(plan.failure_kind or "", reason)


def progress_of(plan: Plan) -> str:
    """Returns how far a plan is, and what it took."""
    usage = cast("dict[str, float]", plan.usage or {})
    parts: list[str] = []
    if plan.steps:
        parts.append(f"{len(complete_steps(plan))} of {many(len(plan.steps), 'step')} done")
    replans = plan.replan_count - is_without_plan(plan)
    if replans > 0:
        parts.append(f"planned anew {many(replans, 'time')}")
    if usage:
        parts.append(f"{usage.get('seconds', 0):.1f} s")
    tokens = round(usage.get("tokens_in", 0) + usage.get("tokens_out", 0))
    if tokens:
        parts.append(f"{tokens:,} tokens")
    return " · ".join(parts)


def is_without_plan(plan: Plan) -> bool:
    """Whether the planner, when it was asked last, made no plan."""
    return plan.failure_kind in ("infeasible", "no_plan")


def _replans(plan: Plan) -> Sequence[Replan]:
    """Returns the times that a plan was written anew; a planner that found no other way has written nothing."""
    if is_without_plan(plan):
        return plan.replan_history[:-1]
    return plan.replan_history


def sentence_of(
    plan: Plan, is_held: bool, planner: str, executor: str, outputs: Mapping[int, Any]
) -> str:
    """Says what a plan is, who works on it, what failed and what is missing; plain text.

    `outputs`: step -> what it gave. A step that came back with nothing is named: where it counts as done, something
    is missing all the same.
    """
    if not plan.steps and plan.status == "failed":
        return f"A plan: {planner} was to split this task into steps, and found none."
    if not plan.steps:
        return f"A plan: {planner} splits a task into steps. State: {state_of(plan, is_held).text}."
    count = many(len(plan.steps), "step")
    sentence = f"A plan: {planner} split this task into {count}, and {executor} {_deed(plan)}."
    failed = [step for step in plan.steps if step.status in ("failed", "uncertain")]
    missing = [step for step in plan.steps if step.status != "complete"]
    declined = declined_steps(plan)
    if plan.status == "complete":
        sentence += f" {_ending(plan, outputs)}"
    elif failed:
        no_way = f", and {planner} found no other way" if is_without_plan(plan) else ""
        sentence += f" {_numbers(failed)} failed{no_way}. Missing: {_numbers(missing).lower()}."
    elif declined:
        sentence += f" You said no to {_numbers(declined).lower()}."
        not_begun = [step for step in missing if step not in declined]
        if not_begun:
            sentence += f" Not done either: {_numbers(not_begun).lower()}."
    elif missing:
        sentence += (
            f" Not finished: {_numbers(missing).lower()}; state: {state_of(plan, is_held).text}."
        )
    replans = dict.fromkeys(replan.failed_step for replan in _replans(plan))
    if replans:
        again = enumeration([f"{number}" for number in replans])
        sentence += f" On the way step {again} failed, and the rest was planned anew."
    return sentence


def _deed(plan: Plan) -> str:
    """Says what its executor has done."""
    complete = complete_steps(plan)
    if not complete:
        return "has done none of them"
    if len(complete) < len(plan.steps):
        return f"has done {_numbers(complete).lower()}"
    return "has done it" if len(plan.steps) == 1 else "has done them"


def _ending(plan: Plan, outputs: Mapping[int, Any]) -> str:
    """Says of a plan that is done what its steps show to be missing."""
    none_failed = "" if plan.replan_history else ", none failed"
    sentence = f"All of it is done{none_failed}"
    without_output = [step for step in plan.steps if outputs.get(step.step_index) is None]
    if without_output:
        return f"{sentence}, but what {_numbers(without_output).lower()} found is no longer stored."
    without = [step for step in plan.steps if is_empty(outputs[step.step_index])]
    if without:
        return f"{sentence}, but {_numbers(without).lower()} found nothing: that is missing."
    return f"{sentence}, each step found something, and nothing is missing."


def _numbers(steps: Sequence[PlanStep]) -> str:
    noun = "Step" if len(steps) == 1 else "Steps"
    return f"{noun} {enumeration([f'{step.step_index}' for step in steps])}"


def steps_html(
    plan: Plan,
    values: Mapping[int, Any],
    events: Sequence[AgentEvent],
    is_held: bool,
    executor: str = "",
) -> str:
    """Returns the steps as cards: what each is to do, may call, got and gave. `values`: step -> its output."""
    steps = [_step(plan, step, values, events, is_held) for step in plan.steps]
    return render("plan_steps", steps=steps, executor=executor)


class _Step(NamedTuple):
    title: str
    state: Tag
    seconds: str
    result: tuple[str, ...]
    """What it came to, at a glance."""
    facts: list[tuple[str, str]]


def _step(
    plan: Plan,
    step: PlanStep,
    values: Mapping[int, Any],
    events: Sequence[AgentEvent],
    is_held: bool,
) -> _Step:
    state = step_state(plan, step, is_held)
    facts = [
        ("May call", ", ".join(step.skills)),
        ("Has to return", _json(step.return_spec.get("shape"))),
        ("Works out", _json(step.return_spec.get("derived"))),
    ]
    for number in step.inputs:
        facts.append((f"Got, from step {number}", _json(values.get(number))))
    if step.step_index in values:
        facts.append(("Gave", _json(values[step.step_index])))
        facts.append(("Kept as", step.memory_key or ""))
    facts.append(("Failed because", step.failure_reason or ""))
    title = f"{step.step_index}. {step.task}"
    result = _glance(values.get(step.step_index))
    seconds = worked_seconds(step, events)
    return _Step(title, state, "" if seconds is None else f"{seconds:.2f} s", result, facts)


def step_state(plan: Plan, step: PlanStep, is_held: bool) -> Tag:
    """Returns the state of a step in words.

    One that was at work when its plan stopped is still stored as at work; a plan that nobody holds is not.
    """
    state = STATES[step.status]
    is_over = plan.status in OVER or bool(declined_steps(plan))
    if is_over and step.status in ("pending", "executing"):
        return Tag(text="not done")
    if step.status == "pending" and plan.status == "cancelled":
        return Tag(text="not begun")
    of_plan = state_of(plan, is_held)
    if state.tone == "busy" and (plan.status in WAITING or of_plan == IDLE):
        return of_plan
    return state


def worked_seconds(step: PlanStep, events: Sequence[AgentEvent]) -> float | None:
    """Returns how long a step was worked on, and None until it has ended; the time in which no process was there does
    not count."""
    if not step.finished_at or not step.started_at:
        return None
    durations: list[int] = []
    last_at = step.started_at
    for event in events:
        if event.task_id != step.task_id:
            continue
        if event.event_type == "subagent.finish":
            durations.append(event.duration_ms or 0)
        # Its end is noted by whoever takes the plan up, however late that is.
        elif event.event_type != f"step_{step.step_index}.complete":
            last_at = max(last_at, event.ts)
    if durations:
        return sum(durations) / 1000
    return min(last_at, step.finished_at) - step.started_at


def _glance(value: Any) -> tuple[str, ...]:
    """Returns the first lines of what a step gave, in the words of the plan's answer; of ids alone how many they
    are, for they say nothing to a reader."""
    if value is None:
        return ()
    if is_ids(value):
        return (size_of(value),)
    lines: list[str] = []
    for line in words_of(value, Wording(rows=GLANCE)).splitlines():
        line = line.removeprefix("- ")
        lines.append(line if len(line) <= WIDEST else f"{line[:WIDEST]} …")
    return tuple(lines)


def history_html(plan: Plan, events: Sequence[AgentEvent]) -> str:
    """Returns what was planned anew, and why, with every step that had failed as it was; empty where nothing was."""
    rows: list[Row] = []
    for replan in _replans(plan):
        attempt = f"{replan.attempt}"
        for step in replan.failed_steps:
            reason = step.failure_reason or ""
            if step.step_index == replan.failed_step:
                # With what its executor had suggested.
                reason = replan.reason
            happened = (step.failure_kind or "failed").replace("_", " ")
            seconds = worked_seconds(step, events)
            if seconds is not None:
                happened = f"{happened}, after {seconds:.2f} s"
            name = f"step {step.step_index}: {step.task}"
            shape = _json(step.return_spec.get("shape"))
            rows.append((attempt, name, shape, happened, reason[:LONGEST]))
        if not replan.failed_steps:
            # An earlier version kept the number of the step alone.
            happened = replan.trigger.replace("_", " ")
            name = f"step {replan.failed_step}"
            rows.append((attempt, name, "", happened, replan.reason[:LONGEST]))
    if not rows:
        return ""
    head = ("Attempt", "Because of", "It had to return", "What happened", "Why")
    return table_html("What was planned anew", rows, head, kind="plan-table rows")


def _json(value: Any) -> str:
    """Returns a value as JSON, the beginning of a long one."""
    if value is None:
        text = ""
    elif isinstance(value, str):
        text = value
    else:
        text = json.dumps(value, ensure_ascii=False)
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]} … ({len(text):,} characters)"
