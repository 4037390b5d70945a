"""The answer of a plan says what was asked, by the names of things, and claims nothing that its steps do not show."""

from typing import Any

import pytest

from kit.compose.locale import BY_LANGUAGE
from kit.core.documents.document import PlanStep
from kit.planning.answer import step_words
from kit.planning.output_words import is_empty
from kit.planning.plan import new_plan
from tests.kits import ALICE

REQUEST = "For the two best active shops in Oakfield: the street of each, and the cakes of each"
TASKS = (
    ("List the active shops in Oakfield", None),
    ("Rank those shops by score, limit 2", 1),
    ("Look up the street of shop number 1", 2),
    ("Look up the street of shop number 2", 2),
    ("List the cakes of shop number 1", 2),
    ("List the cakes of shop number 2", 2),
)
BEST = {"rank": 1, "shop_id": "s-7", "name": "Amber", "score": 9.5, "revenue_cents": 120_050}
SECOND = {"rank": 2, "shop_id": "s-9", "name": "Clover", "score": 8.25, "revenue_cents": 98_000}
AMBER = {"id": "s-7", "name": "Amber", "street": "1 Mill Road", "status": "active"}
CLOVER = {"id": "s-9", "name": "Clover", "street": "2 Elm Street", "status": "active"}
TART = {"id": "i-1", "name": "Tart", "category": "cakes", "price_cents": 450, "vegan": True}
PIE = {"id": "i-2", "name": "Pie", "category": "cakes", "price_cents": 300, "vegan": False}


def outputs(**changes: Any) -> dict[int, Any]:
    """What the six steps gave; `changes`: step_<number> to something else."""
    given: dict[int, Any] = {
        1: {"shops": [{"id": f"s-{number}"} for number in range(348)]},
        2: {"results": [BEST, SECOND]},
        3: {"shop": AMBER},
        4: {"shop": CLOVER},
        5: {"shop": "Amber", "items": [TART, PIE]},
        6: {"shop": "Clover", "items": [TART, {**PIE, "id": "i-3", "name": "Tart"}]},
    }
    return given | {int(name.removeprefix("step_")): value for name, value in changes.items()}


def told(values: dict[int, Any], language: str = "en") -> str:
    plan = new_plan("p1", ALICE.principal, "s1", REQUEST, now=0.0)
    steps = [
        PlanStep(step_index=number, task=task, input_from_step=given, status="complete")
        for number, (task, given) in enumerate(TASKS, 1)
    ]
    sentences = BY_LANGUAGE[language].sentences
    findings = step_words(plan.replace(steps=steps), values, sentences)
    return "\n\n".join(step.text for step in findings)


def test_each_step_is_told_under_its_task_and_ids_that_another_works_on_as_their_number() -> None:
    assert told(outputs()) == (
        "**1. List the active shops in Oakfield:** 348 shops.\n\n"
        "**2. Rank those shops by score, limit 2:** 2 results:\n"
        "1. Amber: score 9.5, revenue $1,200.50\n2. Clover: score 8.25, revenue $980.00\n\n"
        "**3. Look up the street of shop number 1:** Amber: street 1 Mill Road, status active.\n\n"
        "**4. Look up the street of shop number 2:** Clover: street 2 Elm Street, status active.\n\n"
        "**5. List the cakes of shop number 1:** Shop Amber.\n"
        "2 items, each with category cakes:\n"
        "- Tart: price $4.50, vegan\n- Pie: price $3.00, not vegan\n\n"
        "**6. List the cakes of shop number 2:** Shop Clover.\n"
        "2 items, each with category cakes:\n"
        # Two things of one name are told apart.
        "- Tart (i-1): price $4.50, vegan\n"
        "- Tart (i-3): price $3.00, not vegan"
    )


def test_what_a_step_did_not_find_and_what_is_gone_is_said_under_its_task() -> None:
    text = told(outputs(step_6={"shop": "Clover", "items": []}, step_4=None))
    assert "**6. List the cakes of shop number 2:** Shop Clover.\nNo items." in text
    assert "**4. Look up the street of shop number 2:** It is done; its result is gone." in text


def test_a_list_that_is_named_by_what_was_done_has_no_plural() -> None:
    moved = [{"animal_id": "a-1", "kennel_id": "k-3"}, {"animal_id": "a-2", "kennel_id": "k-3"}]
    assert "2 moved:" in told(outputs(step_1={"moved": moved}))
    assert "2 seeds:" in told(outputs(step_1={"seed": moved}))


def test_a_spanish_session_reads_no_english_sentence() -> None:
    text = told(outputs(step_4=None, step_6={"items": []}), "es")
    assert "no vegan" in text and "Está hecho, pero su resultado ya no existe." in text
    english = ("each with", " and ", "gone", "not ")
    assert not any(words in text for words in english)


@pytest.mark.parametrize(
    ("output", "empty"),
    [
        ({"found": False, "shop": None}, True),
        ({"shop": "Amber", "items": []}, True),
        ({"total": 0}, False),
        ({"paused": False}, False),
        ({"shop": AMBER}, False),
        (None, True),
    ],
)
def test_a_step_that_came_back_with_nothing_is_told_from_one_that_says_no(
    output: Any, empty: bool
) -> None:
    assert is_empty(output) is empty
