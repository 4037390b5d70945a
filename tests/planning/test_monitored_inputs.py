"""What monitoring reads is written down: kinds of tasks, time-outs of scripts and of locks, how long planners took."""

from pathlib import Path
from typing import Any

import pytest

from kit.models.scripted import Line, ScriptedModel
from kit.planning.planner import planner_query
from kit.runtime.turn import run_turn
from kit.worlds.outlets.skill_service import SkillService
from tests.kits import ALICE
from tests.plan_kits import draft, events_of, plan_kit, plan_of
from tests.step_kits import a_step, in_memory, need_boundary, step_kit


@pytest.mark.req("AS-26")
@pytest.mark.parametrize(
    ("named", "stored"),
    [("Rank outlets!", "rank_outlets"), ("x" * 99, "x" * 40), (None, None)],
)
async def test_a_plan_is_of_the_kind_of_task_that_its_planner_names(
    named: Any, stored: str | None, tmp_path: Path
) -> None:
    plan = {"steps": draft("one"), "task_type": named}
    kit = plan_kit(tmp_path, plan)
    assert (await plan_of(kit, await run_turn("Do it.", ALICE, kit))).task_type == stored


@pytest.mark.req("AS-26")
def test_planners_read_the_kinds_of_tasks_that_the_deck_has() -> None:
    """So that two plans of a kind have one name."""
    assert '"task_types": [\n  "ranking"' in planner_query(
        "Do it.", task_types=("ranking", "menus")
    )
    assert "task_types" not in planner_query("Do it.")


@pytest.mark.realtime
@pytest.mark.req("AS-21")
async def test_how_a_script_ended_is_told(
    tmp_path: Path,
) -> None:
    need_boundary()
    lines: list[Line | str] = []
    for script in ("1 / 0", "print('x' * 3000)", "print(1)"):
        lines.append(Line(calls=[("exec_python", {"script": script, "data": "x"})]))
    output = {"key": "outlets", "data": {"outlets": []}}
    executor = ScriptedModel(*lines, Line(calls=[("write_memory", output)]), "Done.")
    step = a_step("List the active outlets", "outlet_list", {"outlets": "array<{id: string}>"})
    limits = {"exec_python": {"output": 2000}}
    async with in_memory(SkillService()) as client:
        kit = step_kit(tmp_path, client, executor, [step], tool_config=limits)
        await run_turn("Which are active?", ALICE, kit)
    scripts = await events_of(kit, "python_script.executed")
    assert [(event.status, event.exit_code) for event in scripts] == [
        ("failed", 1),
        ("oversized_output", None),
        ("ok", 0),
    ]
