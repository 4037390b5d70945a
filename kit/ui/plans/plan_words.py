"""A stored plan in the words and the HTML of its page."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, cast

from kit.core.display.count import many
from kit.metrics.plan_health import PlanHealth
from kit.planning.plan import complete_steps
from kit.stores.documents.document import AgentEvent, Plan, PlanStep
from kit.ui.shared.table import row_html, table_html
from kit.ui.shared.wording import Tone, tag_html

STATUS: Mapping[str, tuple[str, Tone]] = {
    "pending": ("waiting", ""),
    "planning": ("being planned", "busy"),
    "executing": ("at work", "busy"),
    "replanning": ("being planned anew", "warn"),
    "complete": ("done", "good"),
    "failed": ("failed", "bad"),
    "uncertain": ("nobody knows", "bad"),
}
"""State of a plan or a step -> its words and their colour."""
IDLE = ("stopped", "warn")
"""A plan that has not ended and that nobody works on."""
REASONS = {
    "max replan attempts reached": "It was planned anew three times, and failed again.",
    "budget": "What it may take was used up.",
    "uncertain": "A skill was called whose end is not known. Whether it has acted, nobody knows, "
    "and it is not called again.",
}
LONGEST = 1_500
"""Characters of a value that the page shows."""


def state_of(plan: Plan, now: float) -> tuple[str, Tone]:
    """Returns the state of a plan in words, with their colour; one that nobody holds is stopped."""
    at_work = plan.status in ("complete", "failed") or (plan.lease_expires or 0) > now
    if at_work:
        return STATUS[plan.status]
    return IDLE


def reason_of(plan: Plan) -> str:
    """Returns why a plan failed, in a sentence; empty where it did not."""
    failure = cast("dict[str, Any]", plan.failure or {})
    reason = str(failure.get("reason", ""))
    return REASONS.get(reason, f"{reason[:1].upper()}{reason[1:]}" if reason else "")


def progress_of(plan: Plan) -> str:
    """Returns how far a plan is, and what it took."""
    usage = cast("dict[str, float]", plan.usage or {})
    if plan.steps:
        parts = [f"{len(complete_steps(plan))} of {many(len(plan.steps), 'step')} done"]
    else:
        parts = []
    parts += [f"planned anew {many(plan.replan_count, 'time')}"] if plan.replan_count else []
    parts += [f"{usage.get('seconds', 0):.1f} s"] if usage else []
    tokens = round(usage.get("tokens_in", 0) + usage.get("tokens_out", 0))
    return " · ".join([*parts, *([f"{tokens:,} tokens"] if tokens else [])])


def steps_html(
    plan: Plan, values: Mapping[int, Any], events: Sequence[AgentEvent], now: float
) -> str:
    """Returns the steps as cards: what each is to do, may call, got and gave. `values`: step -> its output."""
    return f'<ol class="steps">{"".join(_step_html(plan, step, values, events, now) for step in plan.steps)}</ol>'


def _step_html(
    plan: Plan, step: PlanStep, values: Mapping[int, Any], events: Sequence[AgentEvent], now: float
) -> str:
    words, tone = STATUS[step.status]
    if tone == "busy" and state_of(plan, now) == IDLE:
        words, tone = IDLE
    if step.finished_at and step.started_at:
        seconds = f"{step.finished_at - step.started_at:.2f} s"
    else:
        seconds = ""
    facts = [
        ("May call", ", ".join(step.skills)),
        ("Has to return", _json(step.return_spec.get("shape"))),
    ]
    if step.input_from_step:
        facts.append(
            (f"Got, from step {step.input_from_step}", _json(values.get(step.input_from_step)))
        )
    if step.step_index in values:
        facts += [("Gave", _json(values[step.step_index])), ("Kept as", step.memory_key or "")]
    facts += _acts_of([event for event in events if event.task_id == step.task_id])
    if step.failure_reason:
        facts.append(("Failed because", step.failure_reason))
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts if text
    )
    head = f"<b>{step.step_index}. {escape(step.task)}</b>{tag_html(words, tone)}<span>{seconds}</span>"
    if tone in ("busy", "bad", "warn"):
        state = " open"
    else:
        state = ""
    return f"<li><details{state}><summary>{head}</summary><dl>{rows}</dl></details></li>"


def _acts_of(events: Sequence[AgentEvent]) -> list[tuple[str, str]]:
    """Returns what a task's events say of skills, large responses and scripts."""
    facts: list[tuple[str, str]] = []
    for event in events:
        payload = cast("dict[str, Any]", event.payload or {})
        if event.event_type == "skill.called":
            size = f"{event.response_size_bytes or 0:,} bytes in {event.duration_ms or 0:,} ms"
            facts.append(
                (
                    "Called",
                    f"{event.skill_id}: {size}"
                    + ("" if event.status in (None, "ok") else f", {event.status}"),
                )
            )
        elif event.event_type == "large_response.detected":
            facts.append(
                (
                    "Too long to read",
                    f"{payload.get('size_bytes', 0):,} bytes, kept in a file and read by a script",
                )
            )
        elif event.event_type == "python_script.executed":
            rows = f"{payload.get('input_rows')} rows in, {payload.get('output_rows')} out, exit code {event.exit_code}"
            facts.append(("Ran a script", f"{(event.script_hash or '')[:8]}: {rows}"))
    return facts


def history_html(plan: Plan) -> str:
    """Returns what was planned anew, and why; empty where nothing was."""
    rows: list[str] = []
    for replan in plan.replan_history:
        rows.append(
            row_html(
                f"{replan.attempt}",
                f"step {replan.failed_step}",
                escape(replan.trigger.replace("_", " ")),
                escape(replan.reason[:LONGEST]),
            )
        )
    if rows:
        return _table(
            "What was planned anew", rows, ("Attempt", "Because of", "What happened", "Why")
        )
    return ""


def timeline_html(events: Sequence[AgentEvent]) -> str:
    """Returns the events of a plan in order, each with its time after the first and what it says."""
    if events:
        first = events[0].ts
    else:
        first = 0.0
    rows: list[str] = []
    for event in events:
        rows.append(
            row_html(f"{event.ts - first:.2f} s", escape(event.event_type), escape(_words(event)))
        )
    return _table("Timeline", rows, ("After", "Event", "What it says"))


def _words(event: AgentEvent) -> str:
    columns = (
        "skill_id",
        "status",
        "duration_ms",
        "response_size_bytes",
        "exit_code",
        "lock_wait_ms",
    )
    fields: dict[str, Any] = {}
    for name in columns:
        if getattr(event, name) is not None:
            fields[name] = getattr(event, name)
    fields |= cast("dict[str, Any]", event.payload or {})
    return ", ".join(f"{name} {_json(value)}" for name, value in fields.items())[:LONGEST]


def health_html(health: PlanHealth) -> str:
    """Returns the seven figures of plans as a table, each share with its interval."""
    shares = (
        ("Done without being planned anew", health.success),
        ("Responses too long to read", health.large_responses),
        ("Outputs that their contract refused", health.violations),
        ("Failed after the last replan", health.exhausted),
    )
    rows: list[str] = []
    for name, share in shares:
        rows.append(
            row_html(
                name, f"{share:.1%}" if share.n else "–", escape(share.basis) if share.n else ""
            )
        )
    rows += [
        row_html("Replans of a plan, mean", f"{mean:.2f}", escape(kind))
        for kind, mean in health.replans.items()
    ]
    rows += [
        row_html(f"Steps that failed: {skill}", f"{share:.1%}", escape(share.basis))
        for skill, share in health.step_failures.items()
    ]
    rows += [
        row_html(f"95 of 100 tasks end within: {agent}", f"{ms / 1000:.2f} s", "")
        for agent, ms in health.p95_ms.items()
    ]
    return _table("Health of plans", rows, ("Figure", "Value, with its interval", "Of"))


def _table(label: str, rows: Sequence[str], head: Sequence[str]) -> str:
    return f'<div class="plan-table">{table_html(label, rows, head)}</div>'


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
