"""A planner finds skills, reads them and hands in steps that can be run; what cannot be run is sent
back, with the reason."""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
from langchain_core.language_models.chat_models import BaseChatModel

from kit.compose.deck import Deck, load_deck
from kit.compose.registry import Registry
from kit.core.card import AgentCard, ExampleStep, Handoff, PlanExample, Policy
from kit.core.documents.document import PlanStep
from kit.core.errors import BindError
from kit.core.outcome import AgentCall, Outcome
from kit.models.offline import OfflineModel
from kit.models.offline.planner import NO_EXAMPLE, NO_OTHER_WAY
from kit.models.scripted import Line, ScriptedModel
from kit.planning.draft import Draft, DraftStep, Infeasible, ReturnSpec, faults
from kit.planning.journal import Journal
from kit.planning.planner import MOST_DRAFTS, PLANNER_TOOLS, planner_query
from kit.planning.scope import PlannerScope, plans
from kit.planning.services import PlanServices, PlanTool
from kit.planning.tools import plan_tools
from kit.runtime.context import RunContext
from kit.runtime.dispatch import dispatch
from kit.runtime.pattern import Bind, Pattern
from kit.runtime.team import Team, bind
from kit.runtime.turn import run_turn
from kit.settings import HOME, Settings
from kit.stores.sqlite import SqliteStore
from kit.tools.skill import FIND, LOAD, SharedSkills, Skills
from kit.tools.task_memory import TaskMemory
from kit.tools.temp_files import open_temp_files
from kit.wire import open_kit
from kit.worlds.outlets.manifest import read_manifests
from kit.worlds.outlets.server import skill_app
from kit.worlds.outlets.skill_service import SkillService
from kit.worlds.service.serve import serving
from tests.kits import ALICE, OFFLINE, SmallKit, small_deck
from tests.service.servers import deck_of_plans
from tests.step_kits import in_memory, plan_examples
from tests.tools.test_skills import KEYS

SERVICE, MANIFESTS = SkillService(), read_manifests()
OUTPUTS = {name: skill.output_schema for name, skill in MANIFESTS.items()}
RANKED = "Rank the active outlets in Rivermont by how they did in the last 8 weeks"
SIX = "For the two best active outlets in Oakfield: the street of each, and the desserts on the menu of each"
"""The stand-in makes six steps of it."""


@dataclass
class Run:
    """What one run of a planner came to."""

    scope: PlannerScope
    answers: Sequence[str]
    """What its tools told its model."""
    calls: Sequence[str]

    @property
    def steps(self) -> tuple[DraftStep, ...]:
        assert isinstance(self.scope.result, Draft), (self.scope.result, self.scope.refusals)
        return self.scope.result.steps


async def plan(
    model: BaseChatModel,
    query: str,
    tenant: str = "acme",
    first: int = 1,
    *,
    inside: bool = True,
    service: SkillService = SERVICE,
) -> Run:
    """Runs a planner on a model, over the skill service."""
    with closing(SqliteStore(":memory:")) as store:
        async with in_memory(service, tenant) as skills:
            return await _plan(model, query, store, skills, first, inside)


def alone(scope: PlannerScope, query: str, inside: bool = True) -> Pattern:
    """A turn that is one run of the planner, inside a plan or outside."""

    async def run(call: AgentCall, ctx: RunContext) -> Outcome:
        order = AgentCall(call_id="p", agent="planner", query=query)
        if not inside:
            return await dispatch(order, ctx)
        with plans(scope):
            return await dispatch(order, ctx)

    return Pattern("planner_alone", run, planner_team)


def planner_team(deck: Deck, bind: Bind) -> Team:
    """The deck with nobody but the planner to be asked."""
    lead = deck.cards[deck.settings.orchestrator].model_copy(update={"sub_agents": ("planner",)})
    return bind(replace(deck, cards=Registry("card", {**deck.cards, lead.id: lead})))


async def _plan(
    model: BaseChatModel, query: str, store: SqliteStore, skills: Skills, first: int, inside: bool
) -> Run:
    documents = store.open_documents()
    services = PlanServices(
        documents, SharedSkills(skills), open_temp_files(), TaskMemory(documents)
    )
    card = AgentCard(
        id="planner",
        description="Plans.",
        model="offline",
        tools=PLANNER_TOOLS,
        handoff=Handoff(closed=True),
        policy=Policy(max_tool_calls=40),
    )
    team = bind(
        small_deck(("planner",), [card]),
        {"orchestrator": ScriptedModel("no"), "planner": model},
        plan_tools(services),
    )
    scope = PlannerScope(
        Journal(documents.events, ALICE.principal, ALICE.id, "plan_1"),
        skills,
        complete=dict.fromkeys(range(1, first), "any"),
    )
    reply = await run_turn(
        "a task", ALICE, SmallKit(team, store, pattern=alone(scope, query, inside))
    )
    ended = [event.body for event in reply.events if event.body.kind == "tool_ended"]
    return Run(scope, [body.result for body in ended], [body.tool for body in ended])


def step(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A step over outlet_list that can be run."""
    shape = {"outlets": "array<{id: string}>"}
    return {
        "step": number,
        "task": "List them",
        "skills": ["outlet_list"],
        "return_spec": {"shape": shape},
        **changes,
    }


def loads(*names: str) -> Line:
    return Line(calls=[(LOAD, {"skill_name": name}) for name in names])


def submits(*steps: Mapping[str, Any], **plan: Any) -> Line:
    return Line(calls=[("submit_plan", {"steps": list(steps)} if steps else plan)])


# What is handed in holds


@pytest.mark.req("AS-2")
@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([step(n) for n in range(1, 12)], "at most 10 steps, this one would have 11"),
        (
            [step(input_from_step=2), step(2, input_from_step=1)],
            "step 1: its input, step 2, is no step before it",
        ),
        ([step(2), step(2)], "numbered in order, and 2 stands before it"),
        ([step(skills=["outlet_menu"])], "'outlet_menu' was not loaded"),
        ([step(skills=["outlet_inspections"])], "'outlet_inspections' was not loaded"),
        (
            [step(return_spec={"shape": {"outlets": "array<{seats: integer}>"}})],
            "no skill of this step promises $.outlets",
        ),
        ([step(return_spec={"shape": {"outlets": "list of ids"}})], "expected a type"),
        (
            [step(return_spec={"shape": "any"})],
            "its return_spec holds for anything: name the fields",
        ),
        ([step(skills=[])], "it has nothing to go by; name a skill, or the steps"),
        (
            [step(return_spec={"shape": {"count": "integer"}, "derived": ["number"]})],
            "'number' is said to be derived, and is no field",
        ),
        (
            [
                step(),
                step(2, skills=[], input_from_step=1, return_spec={"shape": {"total": "integer"}}),
            ],
            "no skill of this step promises $.total",
        ),
    ],
    ids=[
        "11 steps",
        "cycle",
        "gap",
        "unloaded",
        "foreign",
        "unpromised",
        "no shape",
        "any",
        "idle",
        "derives no field",
        "not in its input",
    ],
)
async def test_a_plan_that_cannot_be_run_is_sent_back_with_the_reason_and_the_next_one_counts(
    steps: list[dict[str, Any]], reason: str
) -> None:
    model = ScriptedModel(
        loads("outlet_list", "outlet_inspections"), submits(*steps), submits(step()), "Done."
    )
    run = await plan(model, planner_query("List them"))
    assert "sent back" in run.answers[2] and reason in run.answers[2]
    assert len(run.steps) == 1 and len(run.scope.refusals) == 1


async def test_after_three_plans_that_do_not_hold_no_further_one_is_taken() -> None:
    bad = step(skills=["nobody"])
    run = await plan(
        ScriptedModel(*[submits(bad)] * MOST_DRAFTS, submits(infeasible="enough"), "Done."), "x"
    )
    assert run.scope.result is None and len(run.scope.refusals) == MOST_DRAFTS
    assert run.answers[-1] == "No further plan is taken."


async def test_steps_that_a_model_words_as_a_text_of_json_are_read() -> None:
    text = Line(calls=[("submit_plan", {"steps": json.dumps([step()])})])
    run = await plan(ScriptedModel(loads("outlet_list"), text, "Done."), "List them")
    assert len(run.steps) == 1 and not run.scope.refusals


@pytest.mark.req("AS-2")
async def test_what_a_step_works_out_or_passes_on_is_named_and_needs_no_promise_of_a_skill() -> (
    None
):
    ids = {"shape": {"outlet_ids": "array<string>"}, "derived": ["outlet_ids"]}
    counted = {"shape": {"count": "integer", "outlet_ids": "array<string>"}, "derived": ["count"]}
    steps = [
        step(return_spec=ids),
        step(2, skills=[], input_from_step=1, return_spec=counted),
        step(3, input_from_step=2, return_spec={"shape": {"count": "integer", "total": "integer"}}),
    ]
    run = await plan(ScriptedModel(loads("outlet_list"), submits(*steps), "Done."), "Count them")
    assert not run.scope.refusals
    assert [one.skills for one in run.steps] == [("outlet_list",), (), ("outlet_list",)]


@pytest.mark.req("AS-2")
async def test_a_planner_that_knows_no_plan_says_why_and_steps_beside_it_are_sent_back() -> None:
    both = Line(calls=[("submit_plan", {"steps": [step()], "infeasible": "or not"})])
    run = await plan(
        ScriptedModel(both, submits(infeasible="nobody flies"), "Done."), "Fly to Rome"
    )
    assert run.scope.result == Infeasible(reason="nobody flies") and len(run.scope.refusals) == 1


async def test_what_a_service_says_of_its_skills_enters_a_context_in_bounds() -> None:
    one = MANIFESTS["outlet_list"]
    names = [f"skill_{a}{b}" for a in "abcdef" for b in "abcdef"]
    many = {
        name: one.model_copy(update={"id": name, "description": "x" * 60_000}) for name in names
    }
    model = ScriptedModel(
        Line(calls=[(FIND, {"query": "x"})]),
        loads("skill_aa"),
        submits(infeasible="too long"),
        "Done.",
    )
    run = await plan(model, "x", service=SkillService(many))
    assert all(len(text) < 25_000 for text in run.answers) and not run.scope.manifests


# A plan that holds can be run in shape


# The stand-in plans by the worked examples of its deck


def stand_in(*examples: PlanExample) -> OfflineModel:
    """The offline stand-in with these examples, or with those of the outlets' deck."""
    return OfflineModel(think=0, plan_examples=examples or plan_examples())


@pytest.mark.req("AS-2")
@pytest.mark.parametrize(
    ("task", "skills"),
    [
        (RANKED, ["outlet_list", "outlet_analytics"]),
        ("List the categories of the menu of ou-0001", ["outlet_menu"]),
        ("Which items on the menu of ou-0001 are vegetarian, with their prices?", ["outlet_menu"]),
        (
            "What is the street of the best outlet in Maple Hill?",
            ["outlet_analytics", "outlet_details"],
        ),
        (SIX, ["outlet_list", "outlet_analytics", *["outlet_details"] * 2, *["outlet_menu"] * 2]),
    ],
)
async def test_the_stand_in_hands_in_the_steps_of_an_example_and_they_hold(
    task: str, skills: list[str]
) -> None:
    run = await plan(stand_in(), planner_query(task))
    assert [one.skills for one in run.steps] == [(name,) for name in skills]
    assert not run.scope.refusals
    assert run.calls[0] == FIND and run.calls[-1] == "submit_plan"
    assert set(skills) == set(run.scope.manifests), "it reads the skills of its steps and no others"


def test_every_example_of_the_deck_is_a_plan_that_holds() -> None:
    for example in plan_examples():
        steps: list[DraftStep] = []
        for number, one in enumerate(example.steps, 1):
            spec = ReturnSpec(shape=one.shape, reason=one.reason)
            draft = DraftStep(step=number, task=one.task, skills=one.skills, return_spec=spec)
            steps.append(draft.replace(input_from_steps=one.inputs))
        assert not faults(steps, OUTPUTS), example.request


async def test_what_a_request_names_and_leaves_out_stands_in_the_tasks_of_its_steps() -> None:
    with_city = (await plan(stand_in(), planner_query(RANKED))).steps
    assert [step.task for step in with_city] == [
        "List the active outlets in Rivermont",
        "Rank those outlets in Rivermont by score over 8 weeks, limit 5",
    ]
    task = "rank the paused pizza outlets by how they did in the last 12 weeks."
    listing, ranking = (await plan(stand_in(), planner_query(task))).steps
    assert listing.task == "List the paused pizza outlets" and ranking.inputs == (1,)
    assert ranking.task == "Rank those pizza outlets by score over 12 weeks, limit 5"


@pytest.mark.req("AS-2")
@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ("book a flight to Rome", NO_EXAMPLE),
        ("List the busy outlets in Rivermont", "I don't know busy"),
        ("Rank the active sushi outlets by how they did in the last 8 weeks", "I don't know sushi"),
    ],
)
async def test_the_stand_in_says_that_it_cannot_plan_or_does_not_know_a_name(
    task: str, reason: str
) -> None:
    """Not even where the nearest option would be a plan that holds."""
    assert (await plan(stand_in(), planner_query(task))).scope.result == Infeasible(reason=reason)


def example(request: str, task: str) -> PlanExample:
    """An example of one step, which lists outlets."""
    step = ExampleStep(task=task, skills=("outlet_list",), shape={"total": "integer"})
    return PlanExample(request=request, steps=(step,))


@pytest.mark.req("AS-2")
async def test_a_slot_that_stands_twice_in_an_example_means_the_same_words_at_both_places() -> None:
    model = stand_in(
        example("Count the outlets in {city} and list those in {city}", "Count {city}")
    )
    same = await plan(
        model, planner_query("count the outlets in Maple Hill and list those in maple hill.")
    )
    assert [step.task for step in same.steps] == ["Count Maple Hill"]
    others = await plan(
        model, planner_query("Count the outlets in Maple Hill and list those in Oakfield")
    )
    assert others.scope.result == Infeasible(reason=NO_EXAMPLE)


async def test_a_form_of_an_argument_that_python_cannot_read_breaks_no_plan() -> None:
    """JSON Schema has the patterns of JavaScript."""
    listing = MANIFESTS["outlet_list"]
    fields = {**listing.input_schema["properties"], "city": {"pattern": r"^\p{L}+$"}}
    schema = {**listing.input_schema, "properties": fields}
    odd = {**MANIFESTS, "outlet_list": listing.model_copy(update={"input_schema": schema})}
    run = await plan(
        stand_in(example("Count the outlets in {city}", "Count {city}")),
        planner_query("Count the outlets in Oakfield"),
        service=SkillService(odd),
    )
    assert [step.task for step in run.steps] == ["Count Oakfield"]


# The rest of a plan is planned anew


def stored(one: DraftStep, status: str = "pending", **fields: Any) -> PlanStep:
    """A step of a draft as its plan keeps it."""
    spec = one.return_spec.model_dump()
    kept = PlanStep(
        step_index=one.step,
        task=one.task,
        skills=one.skills,
        return_spec=spec,
        input_from_steps=one.inputs,
    )
    return kept.replace(status=status, **fields)


@pytest.mark.req("AS-23", "AS-18")
async def test_what_is_complete_counts_among_the_ten_steps_and_keeps_its_numbers() -> None:
    over = [step(number) for number in (9, 10, 11)]
    again = [step(1), step(2)]
    model = ScriptedModel(
        loads("outlet_list"),
        submits(*over),
        submits(*again),
        submits(step(9, input_from_step=3)),
        "Done.",
    )
    run = await plan(model, "x", first=9)
    assert (
        "this one would have 11" in run.scope.refusals[0]
        and "step 1: a complete step has this number" in run.scope.refusals[1]
    )
    assert [one.step for one in run.steps] == [9]


async def revise(task: str, at: int, reason: str) -> tuple[Sequence[DraftStep], Run]:
    """What the stand-in planned, and what it makes of the rest after a step has failed."""
    steps = (await plan(stand_in(), planner_query(task))).steps
    done = [stored(one, "complete", memory_key=f"k{one.step}") for one in steps[: at - 1]]
    failed = stored(steps[at - 1], "failed", failure_reason=reason)
    query = planner_query(task, done, failed, remaining=[failed, *map(stored, steps[at:])])
    return steps, await plan(stand_in(), query, first=at)


@pytest.mark.req("AS-23")
async def test_after_a_fault_that_may_pass_the_stand_in_tries_the_rest_again_and_nothing_that_is_done() -> (
    None
):
    steps, run = await revise(SIX, 2, "timeout: no answer")
    assert run.steps == steps[1:]


@pytest.mark.req("AS-23")
async def test_after_any_other_failure_the_stand_in_says_that_it_has_no_other_plan() -> None:
    _, run = await revise(SIX, 2, "insufficient: too large")
    reason = f"{NO_OTHER_WAY}: step 2 failed, insufficient: too large"
    assert run.scope.result == Infeasible(reason=reason)


# The planner of the outlets


def of_deck(**fields: Any) -> Settings:
    """Settings of a kit that plans for the outlets, which reads nothing of the machine's but where its programs are."""
    variables = {"PATH": os.environ["PATH"], **fields.pop("variables", {})}
    return OFFLINE.with_(variables=variables, **fields)


async def plan_of_deck(settings: Settings) -> tuple[PlannerScope, str]:
    """What the deck's planner makes of a task, and all that is in the trace of its turn."""
    async with open_kit(settings, deck=deck_of_plans()) as kit:
        documents = kit.store.open_documents()
        services: PlanServices = cast("PlanTool", kit.tools["submit_plan"]).services
        async with services.skills.client("acme", None) as skills:
            journal = Journal(documents.events, ALICE.principal, ALICE.id, "plan_1")
            scope = PlannerScope(journal, skills)
            reply = await kit.ask("a task", kit.session("s1"), alone(scope, planner_query(RANKED)))
        return scope, "".join(event.model_dump_json() for event in reply.events)


@pytest.mark.realtime
async def test_the_service_of_the_environment_comes_first_and_its_key_is_in_no_trace() -> None:
    async with serving(skill_app(SkillService(), KEYS)) as url:
        variables = {"SKILL_SERVICE_KEY": KEYS["globex"]}
        scope, trace = await plan_of_deck(
            of_deck(skill_service_url=f"{url}/api/globex", variables=variables)
        )
        assert isinstance(scope.result, Draft) and "outlet_inspections" in trace
        assert KEYS["globex"] not in trace and KEYS["globex"] not in repr(scope)


@pytest.mark.realtime
async def test_where_the_service_is_not_there_the_stand_in_says_that_and_not_that_no_skill_fits() -> (
    None
):
    variables = {"SKILL_SERVICE_KEY": KEYS["acme"]}
    scope, trace = await plan_of_deck(
        of_deck(skill_service_url="http://127.0.0.1:9/api/acme", variables=variables)
    )
    assert (
        scope.result == Infeasible(reason="the skills cannot be read right now")
        and "unavailable" in trace
    )


async def test_a_deck_that_plans_over_no_service_says_what_it_needs() -> None:
    deck = load_deck(HOME / "cards/outlets")
    without = deck.settings.model_copy(update={"skill_service": None})
    with pytest.raises(BindError, match=r"skill_service.*SKILL_SERVICE_URL"):
        async with open_kit(of_deck(), deck=replace(deck, settings=without)):
            pass
