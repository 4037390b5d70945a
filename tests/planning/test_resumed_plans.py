"""A plan that is taken up speaks and works as one that was never stopped: souls, flags, place and language."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kit import Kit, Settings, open_kit
from kit.compose.deck import Deck
from kit.compose.parts import Block, DeckSettings, PlanSettings
from kit.core.bodies.turn import PlanTaken
from kit.core.card import AgentCard
from kit.core.context import Session
from kit.models.scripted import ScriptedModel
from kit.planning.executor import EXECUTOR_TOOLS
from kit.planning.planner import PLANNER_TOOLS
from kit.planning.tools import plan_tools
from kit.stores.documents.document import Persona, Soul
from kit.tools.skill import SkillResult, canonical_text
from tests.kits import stitched
from tests.plan_kits import Described, calls_and_writes, manifest, plan_kit, plans_what_is_asked


class Rows(Described):
    """A skill that gives one row."""

    async def call(
        self, skill: str, arguments: Mapping[str, Any], idempotency_key: str
    ) -> SkillResult:
        content = {"rows": [arguments["task"]]}
        text = canonical_text(content)
        return SkillResult(
            skill=skill,
            content=content,
            text=text,
            size_bytes=len(text),
            input_size_bytes=0,
            duration_ms=0,
        )


@asynccontextmanager
async def opened(folder: Path, seen: dict[str, list[str]]) -> AsyncGenerator[Kit]:
    """A kit over a store in a folder. `seen`: agent -> the system prompts that its model got."""

    def heard(agent: str, script: Any) -> ScriptedModel:
        def say(messages: list[Any]) -> Any:
            seen.setdefault(agent, []).append(str(messages[0].content))
            return script(messages)

        return ScriptedModel(say)

    rules = Block(id="rules", category="safety", owner="platform", text="Never lie.")
    quiet = Block(
        id="quiet", category="instructions", owner="shared", flag="quiet", text="Be quiet."
    )
    cards = [
        AgentCard(id="lead", description="Leads.", model="offline", sub_agents=("desk",)),
        AgentCard(id="desk", description="Answers.", model="offline"),
        AgentCard(
            id="planner",
            description="Plans.",
            model="offline",
            tools=PLANNER_TOOLS,
            prompt_blocks=("quiet",),
        ),
        AgentCard(id="executor", description="Executes.", model="offline", tools=EXECUTOR_TOOLS),
    ]
    roles = PlanSettings(planner="planner", executor="executor")
    settings = DeckSettings(orchestrator="lead", required_blocks=("rules",), planning=roles)
    tools = plan_tools(plan_kit(folder, skills=Rows(manifest("rows"))).services)
    deck = Deck.of(cards, [rules, quiet], settings=settings, flags={"quiet": False}, known=tools)
    models = {
        "lead": heard("lead", stitched),
        "desk": ScriptedModel("Yes."),
        "planner": heard("planner", plans_what_is_asked),
        "executor": heard("executor", calls_and_writes),
    }
    own = Settings(store=str(folder / "kit.db"), pace=0.0, model="offline")
    async with open_kit(own, deck=deck, models=models, tools=tools, pattern="plan_execute") as kit:
        yield kit


async def stopped(kit: Kit, session: Session) -> str:
    """Asks for a plan and stops it as it begins; returns its id."""
    turn = kit.ask("the best three", session)
    async for event in turn:
        if isinstance(event.body, PlanTaken):
            turn.cancel()
    return f"plan_{(await turn).turn_id}"


def a_soul(user: str | None = None, **persona: Any) -> Soul:
    return Soul(
        id=f"acme/{user}",
        tenant_id="acme",
        user_id=user,
        persona=Persona(**persona),
        policies={},
        updated_at=1.0,
    )


@pytest.mark.req("AS-17")
async def test_a_plan_that_is_taken_up_speaks_as_the_souls_of_its_tenant_and_user_say_by_then(
    tmp_path: Path,
) -> None:
    seen: dict[str, list[str]] = {}
    async with opened(tmp_path, seen) as kit:
        souls, alice = kit.store.open_documents().souls, kit.session("s", "acme", "alice")
        await souls.put(a_soul(name="Ada"))
        await souls.put(a_soul("alice", tone="warm", language="es-ES"))
        plan_id = await stopped(kit, alice)
        await souls.put(a_soul("alice", tone="cold", language="es-ES"))
        reply = await kit.resume(plan_id, who=alice.principal)
    (system,) = seen["lead"]
    prefix, _, suffix = system.partition("\n\nDate: ")
    assert (
        "You are called Ada." in prefix
        and "This user wishes: Tone: cold" in suffix
        and "warm" not in system
    )
    assert "Locale: es-ES" in suffix and reply.status == "ok"


async def test_a_plan_that_is_taken_up_has_the_place_of_its_session(tmp_path: Path) -> None:
    seen: dict[str, list[str]] = {}
    async with opened(tmp_path, seen) as kit:
        session = kit.session("s", "acme", "alice").replace(location="Rivermont", locale="es-MX")
        plan_id = await stopped(kit, session)
    async with opened(tmp_path, seen) as kit:
        await kit.resume(plan_id, who=session.principal)
    (system,) = seen["lead"]
    assert all(line in system for line in ("User: alice", "Locale: es-MX", "Location: Rivermont"))


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
    "no return spec": (
        {},
        {"return_spec": None},
        "the stored step says nothing of what it returns",
    ),
    "no such type": ({}, {"return_spec": {"shape": {"a": "nope"}}}, "not 'nope'"),
    "an unknown skill": ({}, {"skills": ("nope",)}, "the stored plan has no manifest of 'nope'"),
    "no manifests": ({"manifests": ["nope"]}, {}, "the stored plan has no manifest of 'rows'"),
    "half a manifest": (
        {"manifests": {"rows": {"id": "rows"}}},
        {},
        "the stored manifest of 'rows' cannot be read: description, input_schema, output_schema",
    ),
    "no figures": ({"usage": {"tokens_in": "nope"}}, {"return_spec": {}}, "says nothing of what"),
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
