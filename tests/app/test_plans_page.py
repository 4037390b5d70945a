"""The page Plans, run by Streamlit's own test driver over a store with real plans."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from streamlit.testing.v1 import AppTest

from kit.core.context import Principal, Session
from kit.core.documents.document import Plan
from kit.core.fault import Fault
from kit.core.fault_injection import inject_faults
from kit.planning.scope import StepScope
from kit.planning.services import PlanServices
from kit.runtime.handle import Turn
from kit.runtime.turn import run_turn
from kit.settings import Settings
from kit.ui.canvas.lane import lanes_of
from kit.ui.plans.plan_words import history_html, progress_of, reason_of, sentence_of, steps_html
from kit.ui.plans.step_picture import picture_html
from kit.ui.shared import frame
from kit.ui.shared.host import Host
from tests.app.rooms import app_over, room, shown
from tests.plan_kits import draft, gives_rows, plan_kit

MINE = Session(id="s1", principal=Principal(tenant_id="acme", user_id="u-001"))


class Planned(NamedTuple):
    """A store with plans, and the id of each by its name."""

    path: Path
    ids: dict[str, str]


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Planned:
    """Three plans of one person: done, failed, stopped; and one of another."""
    folder, ids, turns = tmp_path_factory.mktemp("plans"), dict[str, str](), list[Turn]()

    async def doing(scope: StepScope, services: PlanServices) -> str | None:
        if "broken" in scope.step.task:
            raise OSError("E_BROKEN")
        if "slow" in scope.step.task:
            turns[-1].cancel()
            await asyncio.sleep(3600)
        return await gives_rows(scope, services)

    async def play() -> None:
        drafts = {
            "done": [
                draft("list them", "broken one"),
                draft("rank <b>them</b>", first=2, chain=True),
            ],
            "failed": [draft("broken", *()), *(draft(f"broken {n}") for n in range(3))],
            "stopped": [draft("first of all", "a slow one")],
            "theirs": [draft("of another")],
        }
        for name, plans in drafts.items():
            kit = plan_kit(folder, *plans, doing=doing)
            session = (
                MINE
                if name != "theirs"
                else MINE.replace(id="s2", principal=Principal(tenant_id="acme", user_id="u-002"))
            )
            faults = [Fault(where="executor", kind="raise")] if name == "failed" else []
            with inject_faults(faults):
                turns.append(run_turn(f"Do what is {name}.", session, kit))
            ids[name] = f"plan_{(await turns[-1]).turn_id}"
            kit.store.close()

    asyncio.run(play())
    return Planned(folder / "kit.db", ids)


@pytest.fixture(scope="module")
def app(planned: Planned) -> Iterator[None]:
    """The app over that store. Its pages share one kit, whose service takes a second to start."""
    with (
        pytest.MonkeyPatch.context() as environment,
        app_over(planned.path, environment, DECK="cards/outlets"),
    ):
        yield


@pytest.fixture
def page(app: None) -> AppTest:
    return room("plans")


@pytest.fixture
def host(app: None) -> Host:
    return frame.open_host(Settings.read())


@pytest.fixture
def done(host: Host, planned: Planned) -> Plan:
    """The plan that is done, of two steps, the second of which was planned anew."""
    plan = host.plan(planned.ids["done"], MINE.principal)
    assert plan is not None
    return plan


def opened(page: AppTest, plan_id: str) -> str:
    page.query_params["plan"] = plan_id
    return shown(page.run())


def test_the_list_holds_the_visitors_plans_and_how_plans_do(page: AppTest) -> None:
    page.run()
    assert not page.exception
    rows = page.dataframe[0].value
    assert list(rows["Task"]) == ["Do what is stopped.", "Do what is failed.", "Do what is done."]
    assert list(rows["State"]) == ["stopped by you", "failed", "done"]
    assert "Done without being planned anew" in shown(page) and ") of 2</td>" in shown(page)


def test_a_plan_shows_what_each_step_got_and_gave_and_what_was_planned_anew(
    page: AppTest, planned: Planned
) -> None:
    text = opened(page, planned.ids["done"])
    assert (
        "A plan: Planner split this task into 2 steps, and Executor has done them. All of it is done, each step"
        " found something, and nothing is missing. On the way step 2 failed, and the rest was planned anew."
    ) in text.replace("\\", "")
    assert "1. list them" in text and "rank &lt;b&gt;them&lt;/b&gt;" in text
    # In the answer, which is markdown, a mark of HTML stands behind a backslash.
    assert "<b>them" not in text.replace(r"\<b>", "")
    steps = text.index("**Steps, and what each found**")
    assert text.index("rank \\<b>them") < steps, "the answer comes first"
    assert 'aria-label="Steps of the plan"' in text
    assert re.search(r"<li>1\. list them, done [\d.]+ s</li>", text), "how long a step took"
    assert re.search(r"them&lt;/b&gt;, done [\d.]+ s, after step 1</li>", text), (
        "which step it waited for"
    )
    assert '<ul class="step-result"><li>1 row: list them.</li></ul>' in text
    assert "Got, from step 1" in text and "acme:s1:" in text and "step 2" in text
    history = text[text.index("What was planned anew") :]
    assert "step 2: broken one" in history, (
        "a step that others have taken the place of is told whole"
    )
    assert "array&lt;string&gt;" in history and re.search(r"failed, after [\d.]+ s", history)
    assert [button.label for button in page.button] == ["All plans"]


def test_a_failed_plan_says_why_in_words(page: AppTest, planned: Planned) -> None:
    text = opened(page, planned.ids["failed"])
    words = text.replace("\\", "")
    assert "It was planned anew three times, and failed again" in words
    assert "Step 1 failed. Missing: step 1." in words and "planned 4 times" in words
    assert "<li>Executor fails in the middle of its work" in text, "it was broken on purpose"
    assert "in the middle of its work" not in opened(page, planned.ids["done"])


def test_a_stopped_plan_can_go_on_and_another_persons_is_not_there(
    page: AppTest, planned: Planned
) -> None:
    text = opened(page, planned.ids["stopped"])
    assert (
        "Executor has done step 1. Not finished: step 2; state: stopped by you."
    ) in text.replace("\\", "")
    assert "**1. first of all:** 1 row: first of all." in text, "what it had come to"
    assert "stopped by you" in text and [button.label for button in page.button] == [
        "All plans",
        "Go on",
    ]
    assert "of another" not in opened(page, planned.ids["theirs"])
    assert "There is no such plan of yours" in page.warning[0].value


def test_a_step_says_how_many_it_found_and_one_that_found_nothing_is_missing(
    host: Host, done: Plan
) -> None:
    words = ("Planner", "Executor")
    empty = sentence_of(done, False, *words, {1: {"rows": ["one"]}, 2: {"rows": []}})
    assert "All of it is done, but step 2 found nothing: that is missing." in empty
    gone = sentence_of(done, False, *words, {1: {"rows": ["one"]}})
    assert "but what step 2 found is no longer stored." in gone
    values = {1: {"outlets": [{"id": "ou-1"}, {"id": "ou-2"}]}}
    html = steps_html(done, values, [], False)
    assert '<ul class="step-result"><li>2 outlets</li></ul>' in html
    failed = done.replace(
        steps=(),
        status="failed",
        failure={"reason": "infeasible: I cannot plan this"},
        failure_kind="infeasible",
    )
    said = sentence_of(failed, False, *words, {})
    assert said == "A plan: Planner was to split this task into steps, and found none."
    assert reason_of(failed, "Planner") == "Planner says: I cannot plan this"
    view = host.view(done.plan_id.removeprefix("plan_"), MINE.principal)
    assert view is not None and len(view.steps) > 3, "planned twice, and a run for each step"
    assert f"{len(view.steps)} sub-agent runs" in lanes_of(view)[0].sentence


def test_a_plan_whose_planner_found_no_other_way_was_planned_once(host: Host, done: Plan) -> None:
    first, second = done.steps
    no_way = done.replace(
        steps=(first, second.replace(status="failed")), status="failed", failure_kind="infeasible"
    )
    sentence = sentence_of(no_way, False, "Planner", "Executor", {})
    assert sentence.endswith("Step 2 failed, and Planner found no other way. Missing: step 2.")
    events = host.plan_events(MINE.principal, done.plan_id)
    assert "planned 2 times" in picture_html(done, events, False, "Planner")
    picture = picture_html(no_way, events, False, "Planner")
    assert "found no other way" in picture and "planned" not in picture
    assert "planned anew" not in progress_of(no_way) and history_html(no_way, ()) == ""
    assert history_html(done, ()), "of a plan that was planned anew it says so"


def test_a_plan_of_an_earlier_version_opens_and_names_the_step_that_failed(done: Plan) -> None:
    """It kept of that step the number alone."""
    document = done.model_dump(mode="json")
    for step in document["steps"]:
        del step["failure_kind"]
    (replan,) = document["replan_history"]
    del replan["failed_steps"]
    history = history_html(Plan.model_validate(document), ())
    assert "step 2" in history and "broken one" not in history and "failed" in history


def test_the_time_in_which_nobody_worked_is_no_time_of_the_picture_or_of_a_step(
    host: Host, done: Plan
) -> None:
    first, second = done.steps
    assert first.finished_at and second.started_at and second.finished_at
    day = 86_400
    late = second.replace(started_at=second.started_at + day, finished_at=second.finished_at + day)
    html = picture_html(done.replace(steps=(first, late)), [], False, "Planner")
    assert max(map(float, re.findall(r"--end:([\d.]+)", html))) < 60
    # A process dies at the end of a step; another takes the plan up a day later and notes that end.
    events = host.plan_events(MINE.principal, done.plan_id)
    unfinished = [event for event in events if event.event_type != "subagent.finish"]
    late = first.replace(finished_at=first.finished_at + day)
    for noted in (events, unfinished):
        html = steps_html(done.replace(steps=(late, second)), {}, noted, False)
        seconds = re.findall(r"<span>([\d.]+) s</span>", html)
        assert len(seconds) == 2 and max(map(float, seconds)) < 600


def test_without_a_model_the_page_says_what_can_be_planned(page: AppTest) -> None:
    said = shown(page.run()).replace("\\", "")
    assert "- What is the street of the best outlet in {city}" in said


def test_where_nobody_plans_the_page_says_which_deck_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with app_over(tmp_path / "kit.db", monkeypatch):
        assert "With `KIT_DECK=cards/outlets` the app starts" in shown(room("plans").run())
