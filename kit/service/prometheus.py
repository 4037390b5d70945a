"""GET /metrics: what this process does, and how plans do over its store, in Prometheus' text format.

No line names a tenant, a user or a session; what planners call their tasks is named only where the deck names it too.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from kit.core.context import OPERATOR
from kit.core.display.distribution import VERSION
from kit.metrics.estimate import Estimate
from kit.metrics.plan_alerts import ALERTS
from kit.metrics.plan_health import PlanHealth
from kit.service.monitor import Monitor
from kit.service.service import Service, Serving
from kit.stores.documents.protocol import PlanFilter

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
router = APIRouter()


@dataclass(frozen=True, slots=True)
class Exposition:
    """Lines of Prometheus' text format."""

    lines: list[str] = field(default_factory=list[str])

    def add(
        self,
        name: str,
        meaning: str,
        label: str,
        samples: Mapping[str, float],
        kind: str = "gauge",
    ) -> None:
        """Adds a metric, a line for each value of its label; one without a line is left out."""
        if samples:
            self._begin(name, meaning, kind)
        for text, value in samples.items():
            self.lines.append(f'{name}{{{label}="{_escaped(text)}"}} {value:g}')

    def number(self, name: str, meaning: str, value: float, kind: str = "gauge") -> None:
        """Adds a metric of one line; a gauge goes up and down."""
        self._begin(name, meaning, kind)
        self.lines.append(f"{name} {value:g}")

    def _begin(self, name: str, meaning: str, kind: str) -> None:
        self.lines.extend([f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"])

    def share(self, name: str, meaning: str, share: Estimate) -> None:
        """Adds a share, and how many it is of; of nothing there is no share."""
        if share.n:
            self.number(f"{name}_ratio", meaning, share.value)
        self.number(f"{name}_n", f"How many that is a share of: {meaning}", share.n)


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(service: Serving) -> PlainTextResponse:
    """Says what this process does, and how the plans of the last hour did, for Prometheus."""
    page = Exposition()
    page.add("kit_info", "The version of the kit.", "version", {VERSION: 1})
    _add_process(page, service)
    await _add_plans(page, service)
    return PlainTextResponse("\n".join([*page.lines, ""]), media_type=CONTENT_TYPE)


def _add_process(page: Exposition, service: Service) -> None:
    turns = dict(sorted(service.ended_turns.items()))
    page.add("kit_turns_total", "Turns that ended here, by how.", "status", turns, "counter")
    refusals = service.refused_calls
    page.number("kit_calls_refused_total", "Calls answered with 429.", refusals, "counter")
    running = sum(service.tenants.running.values())
    page.number("kit_turns_running", "Turns that run here, or are followed from here.", running)
    failures = service.kit.recorder.failures
    meaning = "Turns and alerts that a sink did not take."
    page.add("kit_sink_failures_total", meaning, "sink", failures, "counter")


async def _add_plans(page: Exposition, service: Service) -> None:
    documents = service.documents
    waiting = await documents.plans.count(
        PlanFilter(tenant_id=OPERATOR, status="pending"), ("status",)
    )
    page.number("kit_plans_queued", "Plans that nobody has begun yet.", sum(waiting.values()))
    watches, health = await Monitor(documents).only_look()
    page.share("kit_plan_success", "Plans done without being planned anew.", health.success)
    planning = service.kit.deck.settings.planning
    task_types = planning.task_types if planning is not None else ()
    _add_replans(page, health, task_types)
    page.add(
        "kit_plan_step_failure_ratio",
        "Steps that failed, by skill.",
        "skill",
        {skill: share.value for skill, share in health.step_failures.items()},
    )
    page.share("kit_plan_large_response", "Skill calls too large to read.", health.large_responses)
    page.add(
        "kit_plan_task_p95_seconds",
        "95 of 100 tasks end within it, by agent.",
        "agent",
        {agent: value / 1000 for agent, value in health.p95_ms.items()},
    )
    page.share("kit_plan_contract_violation", "Outputs that were refused.", health.violations)
    page.share("kit_plan_exhaustion", "Sessions that used up their replans.", health.exhausted)
    page.share("kit_script_timeout", "Scripts that ran out of time.", health.script_timeouts)
    wait = health.longest_lock_wait_ms / 1000
    page.number("kit_lock_wait_seconds", "The longest wait of a write for a lock.", wait)
    firing: Counter[str] = Counter()
    for watch in watches:
        for alert in watch.alerts:
            firing[alert.firing.name] += 1
    page.add(
        "kit_alert_firing",
        "Tenants for whom an alert fires.",
        "alert",
        {name: firing[name] for name in ALERTS},
    )


def _add_replans(page: Exposition, health: PlanHealth, task_types: Collection[str]) -> None:
    # What a planner calls a task may repeat words of its user.
    means = {name: mean for name, mean in health.replans.items() if name in task_types}
    page.add("kit_plan_replans_mean", "Replans of a plan, by task type.", "task_type", means)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
