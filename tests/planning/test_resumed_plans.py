"""A plan that is taken up speaks and works as one that was never stopped: souls, flags, place and language."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from kit import Kit
from kit.compose.parts import Block
from kit.core.bodies.turn import PlanTaken
from kit.core.context import Session
from kit.models.scripted import Line, Script
from tests.kits import stitched
from tests.plan_kits import Rows, opened_plans, plans_what_is_asked
from tests.stores.test_documents import a_soul

QUIET = Block(id="quiet", category="instructions", owner="shared", flag="quiet", text="Be quiet.")


@asynccontextmanager
async def opened(folder: Path, seen: dict[str, list[str]]) -> AsyncGenerator[Kit]:
    """A kit over a store in a folder. `seen`: agent -> the system prompts that its model got."""

    def heard(agent: str, script: Any) -> Script:
        def say(messages: list[BaseMessage]) -> Line:
            seen.setdefault(agent, []).append(str(messages[0].content))
            return script(messages)

        return say

    lead, planner = heard("lead", stitched), heard("planner", plans_what_is_asked)
    kit = opened_plans(
        folder, Rows(), lead=lead, planner=planner, blocks=[QUIET], flags={"quiet": False}
    )
    async with kit as opened:
        yield opened


async def stopped(kit: Kit, session: Session) -> str:
    """Asks for a plan and stops it as it begins; returns its id."""
    turn = kit.ask("the best three", session)
    async for event in turn:
        if isinstance(event.body, PlanTaken):
            turn.cancel()
    return f"plan_{(await turn).turn_id}"


@pytest.mark.req("AS-17")
async def test_a_plan_that_is_taken_up_speaks_as_the_souls_of_its_tenant_and_user_say_by_then(
    tmp_path: Path,
) -> None:
    seen: dict[str, list[str]] = {}
    async with opened(tmp_path, seen) as kit:
        souls, alice = kit.store.open_documents().souls, kit.session("s", "acme", "alice")
        await souls.put(a_soul(alice.principal, user=False, name="Ada"))
        await souls.put(a_soul(alice.principal, tone="warm", language="es-ES"))
        plan_id = await stopped(kit, alice)
        await souls.put(a_soul(alice.principal, tone="cold", language="es-ES"))
        reply = await kit.resume(plan_id, who=alice.principal)
    (system,) = seen["lead"]
    prefix, _, suffix = system.partition("\n\nDate: ")
    assert (
        "You are called Ada." in prefix
        and "This user wishes: Tone: cold" in suffix
        and "warm" not in system
    )
    assert "Locale: es-ES" in suffix and reply.status == "ok"


@pytest.mark.parametrize("flags", [{}, {"quiet": True}])
async def test_a_plan_that_is_taken_up_works_under_the_flags_of_its_session(
    flags: dict[str, bool], tmp_path: Path
) -> None:
    """The store keeps no flags: whoever takes a plan up says which those are, as whoever asks does."""
    seen: dict[str, list[str]] = {}
    async with opened(tmp_path, seen) as kit:
        session = kit.session("s", "acme", "alice", flags=flags)
        plan_id = await stopped(kit, session)
        reply = await kit.resume(plan_id, who=session.principal, flags=flags)
    assert reply.status == "ok" and seen["planner"]
    assert all(("Be quiet." in system) is bool(flags) for system in seen["planner"])


BROKEN: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no shape": ({}, {"return_spec": {}}, "the stored step says nothing of what it returns"),
    "no such type": ({}, {"return_spec": {"shape": {"a": "nope"}}}, "not 'nope'"),
    "no manifests": ({"manifests": ["nope"]}, {}, "the stored plan has no manifest of 'rows'"),
    "half a manifest": (
        {"manifests": {"rows": {"id": "rows"}}},
        {},
        "the stored manifest of 'rows' cannot be read: description, input_schema, output_schema",
    ),
}
"""What somebody changed in a stored plan, and in its first step; and how its trace words that."""


@pytest.mark.req("AS-17")
@pytest.mark.parametrize("case", BROKEN)
async def test_a_stored_plan_that_somebody_changed_ends_in_a_sentence(
    case: str, tmp_path: Path
) -> None:
    plan_changes, step_changes, words = BROKEN[case]
    async with opened(tmp_path, {}) as kit:
        session = kit.session("s", "acme", "alice")
        plans = kit.store.open_documents().plans
        plan_id = f"plan_{(await kit.ask('the best three', session)).turn_id}"
        plan = await plans.read(session.principal, plan_id)
        assert plan is not None and plan.status == "complete"
        steps = tuple(step.replace(status="pending", **step_changes) for step in plan.steps)
        undone: Any = {"status": "executing", "completed_at": None, "steps": steps}
        await plans.replace(plan.replace(**undone, **plan_changes))
        reply = await kit.resume(plan_id, who=session.principal)
        ended = await plans.read(session.principal, plan_id)
    assert ended is not None and ended.status == "failed"
    assert words in str(ended.failure) and "Error" not in str(ended.failure)
    assert reply.status == "failed" and not [
        event for event in reply.events if "Error" in str(event.body)
    ]
