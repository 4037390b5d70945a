"""What an executor hands in counts where it had something to go by: a lookup of its own, or what earlier steps left."""

from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage

from kit.models.scripted import Line, ScriptedModel
from kit.patterns.plan_execute import resumed
from kit.planning.draft import Draft, DraftStep
from kit.planning.journal import Journal
from kit.planning.plan import new_plan, with_draft, with_step
from kit.runtime.turn import run_turn
from kit.tools.task_memory import Task
from kit.ui.plans.plan_words import history_html, steps_html
from tests.kits import ALICE
from tests.plan_kits import SHAPE, WHO, Rows, draft, events_of, plan_of, read_plan
from tests.step_kits import output_of, step_kit

FALSE = "made up"
SAID = "answered without looking anything up"


def looks_up(task: str) -> Line:
    return Line(calls=[("call_skill", {"skill": "rows", "arguments": {"task": task}})])


def hands_in(row: str) -> Line:
    return Line(calls=[("write_memory", {"key": "rows", "data": {"rows": [row]}})])


GIVES_UP = Line(calls=[("insufficient", {"reason": "it is too much", "suggestion": "split it"})])


@pytest.mark.req("AS-4", "AS-18")
@pytest.mark.parametrize("looks_up_later", [False, True])
async def test_what_was_made_up_is_not_believed_and_its_step_is_planned_anew(
    looks_up_later: bool, tmp_path: Path
) -> None:
    """Neither where nothing is looked up at all, nor where it is looked up once the answer is given."""
    later = [looks_up("tea")] if looks_up_later else []
    mends = [looks_up("tea"), hands_in("tea"), "Done."]
    executor = ScriptedModel(hands_in(FALSE), *later, "Done.", *mends)
    kit = step_kit(tmp_path, Rows(), executor, draft("find tea"), draft("look for tea"))
    reply = await run_turn("Find tea.", ALICE, kit)
    plan = await plan_of(kit, reply)
    assert (plan.status, plan.replan_count) == ("complete", 1)
    assert await output_of(kit, plan) == {"rows": ["tea"]}
    assert FALSE not in reply.text
    assert reply.text.endswith(
        "On the way step 1 failed, and the rest was planned anew. "
        f"Step 1 had {SAID}, and nothing of that is used."
    )
    (revision,) = plan.replan_history
    assert (revision.trigger, revision.reason) == ("nothing_looked_up", f"it {SAID}")
    history = history_html(plan, await events_of(kit))
    assert "nothing looked up" in history and SAID in history
    (failed,) = await events_of(kit, "step_1.failed")
    assert failed.payload == {"reason": f"it {SAID}"}
    assert SAID in str(kit.planner.seen[3][-1].content), "the planner is told why"


@pytest.mark.req("AS-4")
async def test_a_step_that_only_reasons_over_what_earlier_steps_left_is_believed(
    tmp_path: Path,
) -> None:
    executor = ScriptedModel(
        looks_up("tea"), hands_in("tea"), "Done.", hands_in("the best tea"), "Done."
    )
    steps = draft("find tea", "say which is best", chain=True)
    kit = step_kit(tmp_path, Rows(), executor, steps)
    reply = await run_turn("Find the best tea.", ALICE, kit)
    plan = await plan_of(kit, reply)
    assert (plan.status, plan.replan_count) == ("complete", 0)
    assert SAID not in reply.text and "the best tea" in reply.text


@pytest.mark.req("AS-2", "AS-4")
async def test_a_step_without_skills_counts_what_an_earlier_one_found(tmp_path: Path) -> None:
    def counts(number: object) -> Line:
        return Line(calls=[("write_memory", {"key": "n", "data": {"count": number}})])

    find, count = draft("find tea", "count it", chain=True)
    count["skills"] = []
    count["return_spec"] = {"shape": {"count": "integer"}, "derived": ["count"]}
    executor = ScriptedModel(
        *[looks_up("tea"), hands_in("tea"), "Done."],
        *[counts("one"), counts(1), "Done."],
    )
    kit = step_kit(tmp_path, Rows(), executor, [find, count])
    plan = await plan_of(kit, await run_turn("How many teas are there?", ALICE, kit))
    assert (plan.status, plan.replan_count) == ("complete", 0)
    assert await output_of(kit, plan, 2) == {"count": 1}
    brief = str(executor.seen[3][-1].content)
    assert '"skills": []' in brief and '"derived": ["count"]' in brief and "tea" in brief
    refused = str(executor.seen[4][-1].content)
    assert "contract_violation" in refused, "what is derived is held against the shape as well"
    page = steps_html(plan, {}, await events_of(kit), is_held=False)
    assert page.count("Works out") == 1 and page.count("May call") == 1


@pytest.mark.req("AS-4")
async def test_a_step_that_reads_what_another_left_by_its_key_is_believed_and_one_that_reads_its_own_is_not(
    tmp_path: Path,
) -> None:
    def reads_own(messages: list[BaseMessage]) -> Line:
        return reads(str(messages[-1].content), '"key": "')

    def reads_the_first(messages: list[BaseMessage]) -> Line:
        # The planner was told the key when it planned anew.
        return reads(str(kit.planner.seen[3][-1].content), '"memory_key": "')

    executor = ScriptedModel(
        *[looks_up("tea"), hands_in("tea"), "Done."],
        *[hands_in(FALSE), reads_own, "Done."],
        *[reads_the_first, hands_in("the best tea"), "Done."],
    )
    again = draft("read it, and say which is best", first=2)
    kit = step_kit(tmp_path, Rows(), executor, draft("find tea", "say which is best"), again)
    plan = await plan_of(kit, await run_turn("Find the best tea.", ALICE, kit))
    assert [step.status for step in plan.steps] == ["complete", "complete"]
    assert [revision.trigger for revision in plan.replan_history] == ["nothing_looked_up"]
    assert await output_of(kit, plan, 2) == {"rows": ["the best tea"]}


def reads(text: str, before: str) -> Line:
    """Reads the memory whose key a text names."""
    key = text.partition(before)[2].partition('"')[0]
    return Line(calls=[("read_memory", {"key": key})])


@pytest.mark.req("AS-4", "AS-14")
@pytest.mark.parametrize("has_looked_up", [False, True])
async def test_of_a_step_whose_process_died_only_what_it_had_looked_up_counts(
    has_looked_up: bool, tmp_path: Path
) -> None:
    """Its output was written, and the plan did not come to say so."""
    rows = Rows(idempotent=True)
    executor = ScriptedModel(looks_up("tea"), hands_in("tea"), "Done.")
    kit = step_kit(tmp_path, rows, executor, draft("never planned"))
    steps = Draft(steps=(DraftStep.model_validate(draft("find tea")[0]),))
    manifests = {"rows": rows.manifests["rows"].model_dump(mode="json")}
    plan = with_draft(new_plan("plan_x", WHO, ALICE.id, "Find tea.", 0.0), steps, manifests)
    await kit.services.documents.plans.create(with_step(plan, 1, status="executing"))
    task = Task(WHO, ALICE.id, plan.steps[0].task_id or "", "executor", plan.plan_id, 1)
    if has_looked_up:
        journal = Journal(kit.services.documents.events, WHO, ALICE.id, plan.plan_id)
        await journal.of_task(task.id, "executor").write(
            "skill.called", skill_id="rows", status="ok"
        )
    await kit.services.memory.write(task, "rows", {"rows": ["left behind"]}, SHAPE)
    await run_turn("Find tea.", ALICE, kit, resumed("plan_x"))
    plan = await read_plan(kit, "plan_x")
    assert (plan.status, plan.replan_count) == ("complete", 0)
    assert await output_of(kit, plan) == {"rows": ["left behind" if has_looked_up else "tea"]}


@pytest.mark.req("AS-4")
@pytest.mark.parametrize("takes_it_back", [True, False])
async def test_of_an_output_and_insufficient_the_one_said_last_counts(
    takes_it_back: bool, tmp_path: Path
) -> None:
    says = [hands_in("half"), GIVES_UP] if takes_it_back else [GIVES_UP, hands_in("half")]
    mends = [looks_up("tea"), hands_in("tea"), "Done."]
    executor = ScriptedModel(looks_up("tea"), *says, "Done.", *mends)
    kit = step_kit(tmp_path, Rows(), executor, draft("find tea"), draft("look for tea"))
    plan = await plan_of(kit, await run_turn("Find tea.", ALICE, kit))
    assert plan.status == "complete"
    triggers = [revision.trigger for revision in plan.replan_history]
    assert triggers == (["insufficient"] if takes_it_back else [])
    assert await output_of(kit, plan) == {"rows": ["tea" if takes_it_back else "half"]}
