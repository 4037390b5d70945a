"""How long it takes to say how plans do: `python -m benchmarks.monitoring [PLANS] [STORE URL | postgresql]`.

It writes plans, ten turns for each of them that are none, and the events of all, counts them over all time and over the
last hour, and recounts a sample of the plans by hand. With `postgresql` it starts a server on this machine, as the
tests do.
"""

import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

from kit.core.context import Principal
from kit.core.documents.document import AgentEvent, Plan, PlanStep
from kit.metrics.plan_health import count_health, counts_of, plan_health, success_over_time
from kit.planning.plan import new_plan
from kit.service.monitor import Monitor
from kit.stores.documents.protocol import Documents
from kit.stores.documents.tables import EVENTS, PLANS, row_of
from kit.stores.opening import open_store
from kit.stores.statements import insert_new
from kit.stores.turn_store import TurnStore
from tests.postgres import Server

SKILLS = ("outlet_list", "outlet_details", "outlet_menu", "outlet_analytics", "outlet_note")
TYPES = ("rank_outlets", "read_menu", "find_address", None)
TENANTS = 4
SPAN = 30 * 86_400.0
"""Seconds over which plans are spread."""
MANIFESTS: dict[str, Any] = {
    skill: {"description": "x" * 1_500, "input_schema": {}} for skill in SKILLS
}
"""As long as those of the shipped service."""


def plan_and_events(number: int, now: float, rng: Random) -> tuple[Plan, list[AgentEvent]]:
    """Draws a plan of three steps, and what it and ten turns beside it wrote down."""
    owner = Principal(tenant_id=f"tenant{number % TENANTS}", user_id=f"u{number % 97}")
    ended = now - SPAN * rng.random() ** 3
    replans = rng.choices((0, 1, 2, 3), (80, 12, 5, 3))[0]
    failed = replans == 3 and rng.random() < 0.6
    plan = new_plan(f"plan_{number}", owner, f"s{number % 2_000}", "Rank them.", ended - 9.0)
    plan = plan.replace(
        status="failed" if failed else "complete",
        failure_kind="exhausted" if failed else None,
        replan_count=replans,
        completed_at=ended,
        task_type=rng.choice(TYPES),
        steps=tuple(PlanStep(step_index=step, task="List them.") for step in (1, 2, 3)),
        manifests=MANIFESTS,
    )
    events: list[AgentEvent] = []

    def write(event_type: str, **fields: Any) -> None:
        lineage: dict[str, Any] = {"session_id": plan.session_id, **owner.model_dump()}
        event_id = f"{number}.{len(events)}"
        events.append(
            AgentEvent(event_id=event_id, event_type=event_type, ts=ended, **lineage, **fields)
        )

    of_plan: dict[str, Any] = {"plan_id": plan.plan_id}
    write("user_message.received", **of_plan)
    for run in range(1, 4 + replans):
        task: dict[str, Any] = {**of_plan, "task_id": f"{plan.plan_id}.0.{run}"}
        skill = rng.choice(SKILLS)
        write("step_1.started", **task, payload={"skill": skill})
        large = rng.random() < 0.2
        write("skill.called", **task, skill_id=skill, status="ok", large_response_triggered=large)
        if large:
            status = "timeout" if rng.random() < 0.03 else "ok"
            write("python_script.executed", **task, status=status, script_hash="a" * 64)
        took = round(rng.lognormvariate(8, 0.7))
        write("subagent.finish", **task, agent="executor", status="complete", duration_ms=took)
        if run > 3:
            write(
                "contract_violation", **task, payload={"expected_shape": "a", "actual_shape": "b"}
            )
            write("step_1.failed", **task, skill_id=skill)
        else:
            write("memory.written", **task, lock_wait_ms=0, payload={"key": "k" * 60})
            write("step_1.complete", **task, skill_id=skill)
    took = round(rng.lognormvariate(8, 0.7))
    write("subagent.finish", **of_plan, agent="planner", status="complete", duration_ms=took)
    # Turns beside plans write down no more than what their agents keep.
    for _ in range(10):
        write("memory.written", lock_wait_ms=0, payload={"key": "k" * 60})
    return plan, events


def fill(store: TurnStore, count: int, now: float) -> tuple[list[Plan], list[AgentEvent]]:
    """Writes so many plans and their events, and returns those of the first tenth."""
    rng = Random(7)
    sample: tuple[list[Plan], list[AgentEvent]] = ([], [])
    columns = [column.name for column in EVENTS.c if column.name != "seq"]
    store.open_documents()
    for first in range(0, count, 1_000):
        drawn = [
            plan_and_events(number, now, rng) for number in range(first, min(count, first + 1_000))
        ]
        with store.commit() as db:
            db.execute_many(insert_new(PLANS), [row_of(PLANS, plan) for plan, _ in drawn])
            events = [event for _, events in drawn for event in events]
            db.execute_many(
                insert_new(EVENTS, columns), [row_of(EVENTS, event) for event in events]
            )
        if first < count // 10:
            sample[0].extend(plan for plan, _ in drawn)
            sample[1].extend(events)
    return sample


async def measure(documents: Documents, now: float) -> None:
    """Times each question, the best of three."""
    tenant = "tenant0"

    async def all_time() -> None:
        plan_health(await count_health(documents, None, 0.0))

    async def of_tenant() -> None:
        plan_health(await count_health(documents, tenant, 0.0))

    async def line() -> None:
        await success_over_time(documents, tenant, now - SPAN, now, 30)

    async def look() -> None:
        await Monitor(documents, clock=lambda: now).only_look()

    for words, ask in (
        ("all tenants, all time", all_time),
        ("one tenant, all time", of_tenant),
        ("one tenant, a line of 30 points", line),
        ("all tenants, the last hour, and alerts", look),
    ):
        seconds: list[float] = []
        for _ in range(3):
            began = time.perf_counter()
            await ask()
            seconds.append(time.perf_counter() - began)
        print(f"{words:40} {min(seconds):6.3f} s")


@contextmanager
def postgres(folder: Path) -> Generator[Server]:
    """Runs a server until the end of the block."""
    server = Server(folder)
    server.make()
    try:
        yield server
    finally:
        server.remove()


async def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    now = time.time()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        place = sys.argv[2] if len(sys.argv) > 2 else str(folder / "kit.db")
        server = None
        if place == "postgresql":
            server = stack.enter_context(postgres(folder))
            place = server.new_url()
        with closing(open_store(place)) as store:
            plans, events = fill(store, count, now)
            if server is not None:
                # A server does that by itself within a minute; that of the tests does not.
                server.sql("VACUUM ANALYZE")
            documents = store.open_documents()
            stored = sum((await count_health(documents, None, 0.0)).events.values())
            print(f"{count:,} plans, {10 * count:,} turns, {stored:,} events")
            await measure(documents, now)
        with closing(open_store(":memory:")) as few:
            fill(few, count // 10, now)
            counted = await count_health(few.open_documents(), None, 0.0)
            assert plan_health(counted) == plan_health(counts_of(plans, events))
            kinds = Counter(event.event_type for event in events)
            assert plan_health(counted).large_responses.n == kinds["skill.called"]
    print(f"a recount of {len(plans):,} plans agrees")


if __name__ == "__main__":
    asyncio.run(main())
