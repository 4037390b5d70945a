"""An agent of one's own carries out the steps of a plan: what it answers is the output of its step."""

import json
from pathlib import Path

import pytest

from kit.runtime.turn import run_turn
from tests.cli.test_cli import run
from tests.kits import ALICE
from tests.plan_kits import Described, draft, manifest, plan_kit, plan_of
from tests.planning.test_own_skills import change, deck, plan

__all__ = ["deck"]
RUN = "id: executor\ndescription: Carries out one step of a plan.\nrun: {}\n"
READS = """
import json
from pathlib import Path

async def executor(message):
    Path(__file__).with_name("asked").write_text(message)
    return "```json\\n" + json.dumps({"samples": [{"sample_id": "s-of-mine"}]}) + "\\n```"
"""


@pytest.mark.realtime
def test_its_answer_is_the_output_and_it_is_told_step_and_shape(deck: Path) -> None:
    (deck / "executor.yaml").write_text(RUN.format("./agents.py:executor"))
    (deck / "agents.py").write_text(READS)
    checked = run("check", KIT_STORE="")
    assert checked.returncode == 0, checked.stderr
    asked = plan("List the samples of maize", "--json")
    reply = json.loads(asked.stdout.splitlines()[-1])
    assert reply["status"] == "ok" and "s-of-mine" in reply["text"]
    question = (deck / "asked").read_text()
    assert "List the samples of maize" in question and "array<{sample_id: string}>" in question
    assert "sample_list" not in question, "skills that it cannot call"


async def test_an_agent_answers_in_words_where_the_shape_is_one_text(tmp_path: Path) -> None:
    async def executor(query: str) -> str:
        return "A flight to Leeds leaves at noon."

    text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    [step] = draft("Find a flight")
    steps = [{**step, "return_spec": {"shape": {"text": "string"}, "reason": "it is asked for"}}]
    skills = Described(manifest("rows", output_schema=text))
    kit = plan_kit(tmp_path, steps, doing=None, skills=skills)
    kit.team = kit.team.with_services({"executor": executor})
    reply = await run_turn("Fly to Leeds.", ALICE, kit)
    assert reply.status == "ok" and "A flight to Leeds leaves at noon" in reply.text


async def test_an_answer_of_another_shape_fails_the_step_and_is_shown_to_nobody(
    tmp_path: Path,
) -> None:
    async def executor(query: str) -> str:
        return '{"rows": 7}'

    kit = plan_kit(tmp_path, draft("List the samples"), "there is no other way", doing=None)
    kit.team = kit.team.with_services({"executor": executor})
    reply = await run_turn("List the samples.", ALICE, kit)
    assert reply.status == "failed" and '"rows": 7' not in reply.text
    (replanned,) = (await plan_of(kit, reply)).replan_history
    assert "not of the shape asked for" in replanned.reason


def test_a_planner_cannot_run_something_else_and_the_check_says_why(deck: Path) -> None:
    change(deck / "planner.yaml", "model: gpt-4.1-mini\n", "run: ./agents.py:executor\n")
    change(deck / "planner.yaml", "tools: [find_relevant_skills, load_skill, submit_plan]\n", "")
    (deck / "agents.py").write_text("async def executor(message):\n    return message\n")
    checked = run("check", KIT_STORE="")
    assert checked.returncode == 2
    assert "hands in its steps by a tool of the kit's" in checked.stderr
