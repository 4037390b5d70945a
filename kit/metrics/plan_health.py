"""The health of plans: seven figures over stored plans and what their tasks wrote down."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, cast

from kit.core.value import Value
from kit.metrics.estimate import Estimate, share
from kit.metrics.latency import percentile
from kit.stores.documents.document import AgentEvent, Plan

ENDS = ("complete", "failed")


class PlanHealth(Value):
    """What the plans of a tenant are like; shares are of plans, steps or calls that ended."""

    success: Estimate
    """Plans that are complete and were never planned anew, of those that ended."""
    replans: Mapping[str, float]
    """Task type -> mean number of replans of a plan."""
    step_failures: Mapping[str, Estimate]
    """Skill -> steps that failed, of those that named it and ended; the most failures first."""
    large_responses: Estimate
    """Skill calls whose response went into a file."""
    p95_ms: Mapping[str, float]
    """Agent -> the time within which 95 of 100 of its tasks end, in milliseconds."""
    violations: Estimate
    """Writes of an output that its contract refused."""
    exhausted: Estimate
    """Plans that failed after their last replan, of those that ended."""


def plan_health(plans: Sequence[Plan], events: Sequence[AgentEvent]) -> PlanHealth:
    """Returns the health of plans from what is stored of them; `events` are theirs."""
    finished: list[Plan] = []
    good = 0
    worn = 0
    for plan in plans:
        if plan.status in ENDS:
            finished.append(plan)
            good += plan.status == "complete" and not plan.replan_count
            worn += plan.failure_kind == "exhausted"
    kinds: Counter[str] = Counter()
    large = 0
    for event in events:
        kinds[event.event_type] += 1
        large += event.event_type == "skill.called" and event.large_response_triggered
    violations = kinds["contract_violation"]
    writes = kinds["memory.written"]
    return PlanHealth(
        success=share(good, len(finished)),
        replans=_replans(finished),
        step_failures=_step_failures(events),
        large_responses=share(large, kinds["skill.called"]),
        p95_ms=_p95(events),
        violations=share(violations, violations + writes),
        exhausted=share(worn, len(finished)),
    )


def _replans(plans: Sequence[Plan]) -> dict[str, float]:
    by_type: dict[str, list[int]] = defaultdict(list)
    for plan in plans:
        by_type[plan.task_type or ""].append(plan.replan_count)
    return {kind: fmean(counts) for kind, counts in by_type.items()}


def _step_failures(events: Sequence[AgentEvent]) -> dict[str, Estimate]:
    """Counts the ends of steps by the skills that their start names; a step that was planned anew
    is in no plan any more."""
    skills: dict[str | None, list[str]] = {}
    failures = Counter[str]()
    ends = Counter[str]()
    for event in events:
        step, _, end = event.event_type.rpartition(".")
        if step.startswith("step_") and end == "started":
            skills[event.task_id] = str(_fields(event.payload).get("skill", "")).split(", ")
    for event in events:
        step, _, end = event.event_type.rpartition(".")
        if step.startswith("step_") and end in ("complete", "failed"):
            for skill in skills.get(event.task_id, ()):
                ends[skill] += 1
                failures[skill] += end == "failed"
    worst_first = sorted(ends, key=lambda skill: (-failures[skill], skill))
    return {skill: share(failures[skill], ends[skill]) for skill in worst_first}


def _p95(events: Sequence[AgentEvent]) -> dict[str, float]:
    by_agent: dict[str, list[float]] = defaultdict(list)
    for event in events:
        if event.event_type == "subagent.finish" and event.duration_ms is not None:
            by_agent[event.agent or ""].append(event.duration_ms)
    return {agent: percentile(times, 0.95) for agent, times in sorted(by_agent.items())}


def _fields(value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    return {}
