"""A plan is stored at every transition, replanned around what fails, and goes on after its last complete step."""

from pathlib import Path

from kit.runtime.turn import run_turn
from kit.stores.documents.protocol import EventFilter
from tests.kits import ALICE
from tests.plan_kits import draft, plan_kit

WHO = ALICE.principal


async def test_a_task_becomes_a_plan_whose_steps_run_in_order_and_are_answered_from(tmp_path: Path) -> None:
    kit = plan_kit(tmp_path, draft("find them", "rank them"))
    reply = await run_turn("Rank the best.", ALICE, kit)
    assert reply.status == "ok"
    assert "find them" in reply.text and "rank them" in reply.text
    plan = await kit.services.documents.plans.read(WHO, f"plan_{reply.turn_id}")
    assert plan is not None and plan.status == "complete"
    assert [(step.status, step.validated) for step in plan.steps] == [("complete", True)] * 2
    events = await kit.services.documents.events.query(EventFilter(tenant_id=WHO.tenant_id, session_id=ALICE.id))
    assert [event.event_type for event in events] == [
        "user_message.received",
        "subagent_a.spawned",
        "plan.received",
        "plan.persisted",
        "step_1.started",
        "memory.written",
        "subagent.finish",
        "step_1.complete",
        "step_2.started",
        "memory.written",
        "subagent.finish",
        "step_2.complete",
    ]
