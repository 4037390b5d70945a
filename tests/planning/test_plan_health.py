"""The seven figures of plans, each from plans whose ends are known."""

from pathlib import Path

from kit.metrics.plan_health import counts_of, plan_health
from kit.planning.scope import StepScope
from kit.planning.services import PlanServices
from kit.runtime.turn import run_turn
from kit.stores.documents.protocol import EventFilter
from tests.kits import ALICE
from tests.plan_kits import SHAPE, draft, gives_rows, plan_kit


async def test_health_counts_ends_replans_failures_and_violations(tmp_path: Path) -> None:
    """One plan runs through, one is planned anew once, one fails after three replans."""

    async def doing(scope: StepScope, services: PlanServices) -> str | None:
        if "broken" in scope.step.task:
            await services.memory.write(scope.task, "rows", {"rows": 3}, SHAPE)
            return None
        return await gives_rows(scope, services)

    runs = {
        "smooth": [draft("one", "two")],
        "mended": [draft("one", "broken"), draft("two", first=2)],
        "lost": [draft("broken"), *(draft(f"broken {n}") for n in range(3))],
    }
    plans, events = [], []
    for name, drafts in runs.items():
        (tmp_path / name).mkdir()
        kit = plan_kit(tmp_path / name, *drafts, doing=doing)
        await run_turn("Do it.", ALICE, kit)
        documents = kit.services.documents
        plans += await documents.plans.of(ALICE.principal)
        events += await documents.events.query(EventFilter(tenant_id=ALICE.principal.tenant_id))
    health = plan_health(counts_of(plans, events))
    assert health.success.basis == "1 of 3" and health.exhausted.basis == "1 of 1"
    assert health.replans == {"": (0 + 1 + 3) / 3}
    assert health.violations.basis == "5 of 9" and health.step_failures["rows"].basis == "5 of 9"
    assert health.large_responses.n == 0 and list(health.p95_ms) == ["executor", "planner"]
