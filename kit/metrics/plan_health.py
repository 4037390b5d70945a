"""The health of plans: seven figures, and what alerts are made of, from counts that the store makes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kit.core.context import OPERATOR, Principal
from kit.core.documents.document import SKILLS, AgentEvent, Plan
from kit.core.value import Value
from kit.metrics.estimate import Estimate, percent_words, share
from kit.metrics.latency import NEAREST_RANK
from kit.stores.documents.protocol import (
    Counts,
    Documents,
    EventField,
    EventFilter,
    PlanField,
    PlanFilter,
)

FINISH = "subagent.finish"
PLAN_FIELDS: tuple[PlanField, ...] = ("tenant_id", "status", "replan_count", "task_type")
SESSION_FIELDS: tuple[PlanField, ...] = ("tenant_id", "session_id", "failure_kind")
# In the order of an index of the store, which then groups nothing itself.
EVENT_FIELDS: tuple[EventField, ...] = (
    "tenant_id",
    "event_type",
    "agent",
    "skill_id",
    "status",
    "large_response_triggered",
    "lock_wait_ms",
)
DURATION_FIELDS: tuple[EventField, ...] = ("tenant_id", "agent", "duration_ms")


class PlanHealth(Value):
    """What plans are like that ended within some time; shares are of what ended, or was made, in it."""

    success: Estimate
    """Plans that are complete and were never planned anew."""
    replans: Mapping[str, float]
    """Task type -> mean number of replans of a plan; the most first, "" for plans without a type."""
    step_failures: Mapping[str, Estimate]
    """Skill -> steps that failed, of those that named it; the most failures first."""
    large_responses: Estimate
    """Skill calls whose response went into a file."""
    p95_ms: Mapping[str, float]
    """Agent -> the time within which 95 of 100 of its tasks end, in milliseconds."""
    violations: Estimate
    """Writes of an output that its contract refused."""
    exhausted: Estimate
    """Sessions with a plan that failed after its last replan, of those with a plan that ended."""
    script_timeouts: Estimate
    """Scripts of exec_python that ran out of time."""
    longest_lock_wait_ms: int
    """How long a write waited for a lock at most, whether or not it got it."""

    def rows(self) -> list[tuple[str, str, str]]:
        """Returns the seven figures in words: what each is, its value, and of how many that is."""
        rows = [_share_row("Done without being planned anew", self.success)]
        for task_type, mean in self.replans.items():
            name = f"Replans of a plan, mean: {task_type or 'no task type'}"
            rows.append((name, f"{mean:.2f}", ""))
        for skill, share_of_steps in self.step_failures.items():
            rows.append(_share_row(f"Steps that failed: {skill}", share_of_steps))
        rows.append(_share_row("Responses too long to read", self.large_responses))
        for agent, milliseconds in self.p95_ms.items():
            name = f"95 of 100 tasks end within: {agent}"
            rows.append((name, f"{milliseconds / 1000:.2f} s", ""))
        rows.append(_share_row("Outputs that their contract refused", self.violations))
        rows.append(_share_row("Sessions that used up their replans", self.exhausted))
        return rows


def _share_row(name: str, figure: Estimate) -> tuple[str, str, str]:
    if not figure.n:
        return name, "–", ""
    return name, percent_words(figure), f"{figure.n:,}"


@dataclass(frozen=True, slots=True)
class HealthCounts:
    """What is counted of plans that ended and of events, each by the fields above; the first is the tenant."""

    plans: Counts
    sessions: Counts
    events: Counts
    durations: Counts
    """Of ends of agents."""

    @property
    def tenants(self) -> list[str]:
        """The tenants of whom anything was counted."""
        names: set[str] = set()
        for counts in (self.plans, self.events):
            for tenant_id, *_ in counts:
                names.add(tenant_id)
        return sorted(names)

    def of(self, tenant_id: str) -> "HealthCounts":
        """Returns the counts of one tenant."""
        return HealthCounts(
            _of(self.plans, tenant_id),
            _of(self.sessions, tenant_id),
            _of(self.events, tenant_id),
            _of(self.durations, tenant_id),
        )


def _of(counts: Counts, tenant_id: str) -> Counts:
    return {key: count for key, count in counts.items() if key[0] == tenant_id}


async def count_health(
    documents: Documents, whose: Principal | str | None, since: float
) -> HealthCounts:
    """Has the store count the plans that ended, and the events that happened, from `since` on (seconds since the
    epoch): those of a user, of a tenant, or of everybody. Four queries, whatever there is. Raises StoreError."""
    user_id = None
    if isinstance(whose, Principal):
        user_id = whose.user_id
        tenant_id = whose.tenant_id
    else:
        tenant_id = whose or OPERATOR
    plans = PlanFilter(tenant_id=tenant_id, user_id=user_id, ended_since=since)
    events = EventFilter(tenant_id=tenant_id, user_id=user_id, since=since)
    return HealthCounts(
        plans=await documents.plans.count(plans, PLAN_FIELDS),
        sessions=await documents.plans.count(plans, SESSION_FIELDS),
        events=await documents.events.count(events, EVENT_FIELDS),
        durations=await documents.events.count(events.replace(event_type=FINISH), DURATION_FIELDS),
    )


def counts_of(plans: Sequence[Plan], events: Sequence[AgentEvent]) -> HealthCounts:
    """Counts plans and events that are at hand, as a store does."""
    ended_plans = [plan for plan in plans if plan.completed_at is not None]
    finished = [event for event in events if event.event_type == FINISH]
    return HealthCounts(
        plans=_count_in(ended_plans, PLAN_FIELDS),
        sessions=_count_in(ended_plans, SESSION_FIELDS),
        events=_count_in(events, EVENT_FIELDS),
        durations=_count_in(finished, DURATION_FIELDS),
    )


def _count_in(values: Sequence[Plan | AgentEvent], fields: Sequence[str]) -> Counts:
    return Counter(tuple(getattr(value, field) for field in fields) for value in values)


def plan_health(counts: HealthCounts) -> PlanHealth:
    """Returns the health that counts come to."""
    total = 0
    good = 0
    for (_, status, replan_count, _), count in counts.plans.items():
        total += count
        if status == "complete" and replan_count == 0:
            good += count
    sessions: set[tuple[str, str]] = set()
    exhausted: set[tuple[str, str]] = set()
    for tenant_id, session_id, failure_kind in counts.sessions:
        sessions.add((tenant_id, session_id))
        if failure_kind == "exhausted":
            exhausted.add((tenant_id, session_id))
    kinds: Counter[str] = Counter()
    large = 0
    timeouts = 0
    longest_wait = 0
    for (_, kind, _, _, status, is_large, wait), count in counts.events.items():
        kinds[kind] += count
        if kind == "skill.called" and is_large:
            large += count
        if kind == "python_script.executed" and status == "timeout":
            timeouts += count
        longest_wait = max(longest_wait, wait or 0)
    violations = kinds["contract_violation"]
    return PlanHealth(
        success=share(good, total),
        replans=_replans(counts.plans),
        step_failures=_step_failures(counts.events),
        large_responses=share(large, kinds["skill.called"]),
        p95_ms=_p95(counts.durations),
        violations=share(violations, violations + kinds["memory.written"]),
        exhausted=share(len(exhausted), len(sessions)),
        script_timeouts=share(timeouts, kinds["python_script.executed"]),
        longest_lock_wait_ms=longest_wait,
    )


def _replans(plans: Counts) -> dict[str, float]:
    replans: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    for (_, _, replan_count, task_type), count in plans.items():
        totals[task_type or ""] += count
        replans[task_type or ""] += count * replan_count
    means = {kind: replans[kind] / totals[kind] for kind in totals}
    return dict(sorted(means.items(), key=lambda mean: (-mean[1], mean[0])))


def _step_failures(events: Counts) -> dict[str, Estimate]:
    """Counts the ends of steps, each for all skills that the step names; a step that was planned anew is in no
    plan any more."""
    failures: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    for (_, kind, _, skills, *_), count in events.items():
        step, _, end = kind.rpartition(".")
        if not skills or not step.startswith("step_") or end not in ("complete", "failed"):
            continue
        for skill in skills.split(SKILLS):
            ends[skill] += count
            if end == "failed":
                failures[skill] += count
    worst_first = sorted(ends, key=lambda skill: (-failures[skill], skill))
    return {skill: share(failures[skill], ends[skill]) for skill in worst_first}


def _p95(durations: Counts) -> dict[str, float]:
    by_agent: dict[str, Counter[float]] = {}
    for (_, agent, milliseconds), count in durations.items():
        if agent is not None and milliseconds is not None:
            by_agent.setdefault(agent, Counter())[milliseconds] += count
    p95: dict[str, float] = {}
    for agent, counts in sorted(by_agent.items()):
        weights = list(counts.values())
        p95[agent] = float(np.quantile(list(counts), 0.95, weights=weights, method=NEAREST_RANK))
    return p95


class SuccessPoint(Value):
    """Plans that ended within a stretch of time, which begins at `at` (seconds since the epoch)."""

    at: float
    success: Estimate


async def success_over_time(
    documents: Documents, tenant_id: str, since: float, until: float, points: int
) -> Sequence[SuccessPoint]:
    """Returns the share of plans that were done without being planned anew, in so many stretches of equal length.

    Raises StoreError.
    """
    by = PlanFilter(tenant_id=tenant_id, ended_since=since, ended_until=until)
    counts = await documents.plans.count(by, ("completed_at", "status", "replan_count"))
    length = (until - since) / points
    totals = Counter[int]()
    good = Counter[int]()
    for (completed_at, status, replan_count), count in counts.items():
        stretch = min(points - 1, int((completed_at - since) / length))
        totals[stretch] += count
        if status == "complete" and replan_count == 0:
            good[stretch] += count
    return [
        SuccessPoint(at=since + length * number, success=share(good[number], totals[number]))
        for number in range(points)
    ]
