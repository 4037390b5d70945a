"""The alerts of plans: five thresholds over the last hour, each of one tenant."""

from collections.abc import Mapping
from typing import Literal, get_args

from kit.core.display.count import many
from kit.core.value import Value
from kit.metrics.plan_health import PlanHealth

AlertName = Literal[
    "plan_success", "replan_exhaustion", "contract_violation", "script_timeout", "lock_wait"
]
ALERTS: tuple[AlertName, ...] = get_args(AlertName)
WINDOW = 3600.0
"""Seconds that are looked back."""
LEAST_SUCCESS = 0.8
MOST_EXHAUSTED = 0.05
MOST_TIMEOUTS = 0.05
LONGEST_LOCK_WAIT_MS = 2000
# Below 20, a single session or script is more than 5 % of them, and would wake somebody by itself. Of 20 plans that
# succeed nine times in ten, fewer than 16 do in four hours of a hundred; of 10, fewer than 8 in seven.
LEAST_N = 20
"""Plans, sessions or scripts within the window, below which a share fires no alert."""
MEANINGS: Mapping[AlertName, str] = {
    "plan_success": "{value:.0%} of {n:,} plans were done without being planned anew; "
    "at least {threshold:.0%} should be",
    "replan_exhaustion": "in {value:.1%} of {n:,} sessions a plan failed after its last replan; "
    "at most {threshold:.0%} should",
    "contract_violation": "{value:.0f} of {n:,} outputs were not of the shape that was planned; none should be",
    "script_timeout": "{value:.1%} of {n:,} scripts ran out of time; at most {threshold:.0%} should",
    "lock_wait": "a write waited {value:,.0f} ms for a lock; at most {threshold:,.0f} ms are usual",
}


def quiet_words(plans: int) -> str:
    """Says that no alert fires, and so many plans having ended within the window, whether that says anything."""
    if plans == 0 or plans >= LEAST_N:
        return "No alert fires."
    are = "is" if plans == 1 else "are"
    return f"No alert fires; {many(plans, 'plan')} {are} too few to tell, it takes {LEAST_N}."


class Firing(Value):
    """An alert whose threshold is passed."""

    name: AlertName
    value: float
    threshold: float
    n: int
    """How many plans, sessions, writes or scripts the value is of; of a lock wait 1."""

    @property
    def sentence(self) -> str:
        """What is wrong, for a person."""
        return MEANINGS[self.name].format(value=self.value, threshold=self.threshold, n=self.n)


def firing(health: PlanHealth) -> tuple[Firing, ...]:
    """Returns the alerts that fire at this health, which is that of the last WINDOW."""
    alerts: list[Firing] = []

    def fire(name: AlertName, value: float, threshold: float, n: int) -> None:
        alerts.append(Firing(name=name, value=value, threshold=threshold, n=n))

    success = health.success
    if success.n >= LEAST_N and success.value < LEAST_SUCCESS:
        fire("plan_success", success.value, LEAST_SUCCESS, success.n)
    exhausted = health.exhausted
    if exhausted.n >= LEAST_N and exhausted.value > MOST_EXHAUSTED:
        fire("replan_exhaustion", exhausted.value, MOST_EXHAUSTED, exhausted.n)
    violations = health.violations
    if violations.right:
        fire("contract_violation", violations.right, 0, violations.n)
    timeouts = health.script_timeouts
    if timeouts.n >= LEAST_N and timeouts.value > MOST_TIMEOUTS:
        fire("script_timeout", timeouts.value, MOST_TIMEOUTS, timeouts.n)
    wait = health.longest_lock_wait_ms
    if wait > LONGEST_LOCK_WAIT_MS:
        fire("lock_wait", wait, LONGEST_LOCK_WAIT_MS, 1)
    return tuple(alerts)
