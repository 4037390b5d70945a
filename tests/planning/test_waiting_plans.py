"""A plan that its user stopped, or that waits for an answer, is taken up by its user and by nobody else."""

import asyncio
import os
import shlex
import signal
import socket
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kit.core.documents.document import AgentEvent, Plan
from kit.patterns.plan_execute import resumed
from kit.planning.scope import StepScope
from kit.planning.services import PlanServices
from kit.runtime.handle import Turn
from kit.runtime.turn import run_turn
from kit.stores.documents.protocol import EventStore, PlanStore
from kit.stores.documents.sql import SqlPlans
from kit.stores.sqlite import SqliteStore
from tests.cli.test_cli import type_command
from tests.forks import started
from tests.kits import ALICE
from tests.plan_kits import (
    Rows,
    Waits,
    draft,
    gives_rows,
    opened_plans,
    plan_kit,
    plan_of,
    read_plan,
)

TASK = "Rank the active outlets in Rivermont by how they did in the last 8 weeks"


class StopsAt:
    """The plans of a store. The first that is stored in a given state is stopped by its user."""

    def __init__(self, plans: PlanStore, status: str):
        self.plans = plans
        self.status = status
        self.turns: list[Turn] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plans, name)

    async def create(self, plan: Plan) -> None:
        await self.plans.create(plan)
        if plan.status == self.status:
            self.turns.pop().cancel()
            await asyncio.sleep(0)

    async def replace(self, plan: Plan) -> Plan:
        newer = await self.plans.replace(plan)
        if newer.status == self.status and self.turns:
            self.turns.pop().cancel()
        return newer


@pytest.mark.req("AS-3")
@pytest.mark.parametrize("status", ["pending", "planning", "executing", "replanning"])
async def test_a_stopped_plan_is_given_to_no_worker_and_its_user_goes_on_where_it_stood(
    status: str, tmp_path: Path
) -> None:
    ran: list[str] = []
    stores: list[StopsAt] = []

    async def doing(scope: StepScope, services: PlanServices) -> str | None:
        ran.append(scope.step.task)
        if scope.step.task == "broken":
            raise OSError("E_BROKEN")
        return await gives_rows(scope, services)

    def stopping(plans: PlanStore) -> StopsAt:
        stores.append(StopsAt(plans, status))
        return stores[-1]

    drafts = [draft("one", "broken"), draft("two", first=2)]
    kit = plan_kit(tmp_path, *drafts, doing=doing, plans=stopping)
    turn = run_turn("Do it.", ALICE, kit)
    stores[0].turns.append(turn)
    reply = await turn
    plan = await plan_of(kit, reply)
    assert (reply.status, plan.status, plan.holder) == ("cancelled", "cancelled", None)
    assert await stores[0].plans.unfinished() == []
    again = await run_turn("Do it.", ALICE, kit, resumed(plan.plan_id))
    plan = await read_plan(kit, plan.plan_id)
    assert (again.status, plan.status, plan.replan_count) == ("ok", "complete", 1)
    assert ran == ["one", "broken", "two"], "each step ran once"


@pytest.mark.req("AS-3")
async def test_a_plan_stopped_just_before_its_process_ends_is_given_to_no_worker(
    tmp_path: Path,
) -> None:
    at_work = asyncio.Event()

    async def ends_late(scope: StepScope, services: PlanServices) -> str | None:
        at_work.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.2)
        return await gives_rows(scope, services)

    kit = plan_kit(tmp_path, draft("one"), doing=ends_late)
    turn = run_turn("Do it.", ALICE, kit)
    await at_work.wait()
    turn.cancel()
    await asyncio.sleep(0.1)
    turn.interrupt()
    reply = await turn
    plan = await plan_of(kit, reply)
    assert (reply.status, plan.status, plan.holder) == ("cancelled", "cancelled", None)


@pytest.mark.realtime
@pytest.mark.req("AS-3")
async def test_a_plan_whose_process_ends_is_given_to_a_worker(tmp_path: Path) -> None:
    """Nobody stopped it: the service that ran it was told to end."""
    slow = Waits()
    async with opened_plans(tmp_path, slow) as kit:
        turn = kit.ask("the best three", kit.session("s"))
        await slow.at_work.wait()
    reply = await turn
    store = SqliteStore(tmp_path / "kit.db")
    (plan,) = await store.open_documents().plans.unfinished()
    assert (reply.status, plan.status) == ("interrupted", "executing")
    assert "was interrupted" in reply.text
    assert plan.plan_id == f"plan_{turn.id}"
    store.close()


async def cut_off(folder: Path) -> Turn:
    """A turn whose plan is at work when its process ends."""
    slow = Waits()
    async with opened_plans(folder, slow) as kit:
        turn = kit.ask("the best three", kit.session("s"))
        await slow.at_work.wait()
    await turn
    return turn


@pytest.mark.realtime
@pytest.mark.req("AS-3")
@pytest.mark.parametrize("message", ["the best three", "go on"])
@pytest.mark.parametrize("is_later", [True, False])
async def test_a_plan_that_was_cut_off_goes_on_where_it_is_asked_for_in_the_same_words(
    message: str, is_later: bool, tmp_path: Path
) -> None:
    turn = await cut_off(tmp_path)
    async with opened_plans(tmp_path, Rows()) as kit:
        other = await kit.ask("the worst three", kit.session("s" if is_later else "t"))
        again = await kit.ask(message, kit.session("s"))
        new = await kit.ask("the best three", kit.session("s"))
    assert again.plan is not None and other.plan is not None
    assert (again.status, again.plan.plan_id) == ("ok", f"plan_{turn.id}")
    assert new.plan is not None and new.plan.plan_id == f"plan_{new.turn_id}"
    assert other.plan.plan_id == f"plan_{other.turn_id}"


@pytest.mark.realtime
@pytest.mark.req("AS-3")
async def test_a_plan_that_goes_on_hears_the_fault_that_is_chosen_for_its_turn(
    tmp_path: Path,
) -> None:
    turn = await cut_off(tmp_path)
    async with opened_plans(tmp_path, Rows(), faults=True) as kit:
        again = await kit.ask("the best three", kit.session("s"), faults=["executor=raise"])
    assert again.plan is not None and again.plan.plan_id == f"plan_{turn.id}"
    assert again.status == "failed" and "I could not get" in again.text


@dataclass
class BreaksOnce:
    """Events whose store breaks by a fault of its code, once, at one kind of event."""

    events: EventStore
    kind: str
    has_broken: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.events, name)

    async def append(self, event: AgentEvent) -> AgentEvent:
        if event.event_type == self.kind and not self.has_broken:
            self.has_broken = True
            raise RuntimeError("E_BROKEN")
        return await self.events.append(event)


async def _break(*arguments: Any) -> None:
    raise RuntimeError("E_BROKEN")


@pytest.mark.req("AS-3")
async def test_a_plan_that_breaks_off_after_an_act_asks_nobody_to_try_again_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it broke off of: whoever asked again would have the act done twice."""
    desk = Rows()
    kit = plan_kit(
        tmp_path,
        draft("order tea", "order paper"),
        doing=None,
        skills=desk,
        events=lambda events: BreaksOnce(events, "step_2.started"),
    )
    reply = await run_turn("Do it.", ALICE, kit)
    plan = await plan_of(kit, reply)
    assert (reply.status, plan.status, plan.holder) == ("interrupted", "executing", None)
    assert "in other words would begin it a second time" in reply.text
    assert "try again" not in reply.text and "E_BROKEN" not in reply.text
    with monkeypatch.context() as broken:
        broken.setattr(SqlPlans, "replace", _break)
        not_taken = await run_turn("Do it.", ALICE, kit, resumed(plan.plan_id))
    assert not_taken.status == "interrupted" and "try again" not in not_taken.text
    again = await run_turn("Do it.", ALICE, kit, resumed(plan.plan_id))
    assert (again.status, desk.tasks) == ("ok", ["order tea", "order paper"])


@pytest.mark.realtime
def test_ctrl_c_stops_a_plan_and_prints_the_line_that_lets_it_go_on(tmp_path: Path) -> None:
    # A service that takes calls and answers none: the planner waits for it.
    silent = socket.create_server(("127.0.0.1", 0))
    environment = {
        "PATH": os.environ["PATH"],
        "KIT_DECK": "cards/outlets",
        "KIT_MODEL": "offline",
        "KIT_STORE": str(tmp_path / "kit.db"),
        "SKILL_SERVICE_URL": f"http://127.0.0.1:{silent.getsockname()[1]}",
        "SKILL_SERVICE_KEY": "a-key",
    }
    told = tmp_path / "stdout"
    with silent:
        ask = ("ask", TASK, "--pattern", "plan_execute", "--json")
        process = started(type_command, ask, environment, tmp_path)
        try:
            while not told.exists() or '"kind":"plan_taken"' not in told.read_text():
                assert process.is_alive()
                time.sleep(0.02)
            assert process.pid is not None
            os.kill(process.pid, signal.SIGINT)
            process.join(30)
            assert process.exitcode == 2
        finally:
            process.kill()
    words = (tmp_path / "stderr").read_text()
    assert "kit: stopped" in words
    line = words.partition("it goes on with: ")[2].splitlines()[0]
    go_on = shlex.split(line)
    assert go_on[1:-1] == ["-m", "kit", "resume"]
    with closing(SqliteStore(tmp_path / "kit.db")) as store:
        (turn,) = store.turns()
        plan = asyncio.run(store.open_documents().plans.read(turn.principal, go_on[-1]))
    assert plan is not None and (turn.status, plan.status) == ("cancelled", "cancelled")
