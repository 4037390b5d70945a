"""The examples that plans are made by: each placeholder and bracket that cannot be meant is a fault with its line."""

from pathlib import Path

import pytest

from kit.compose.deck import load_deck
from tests.compose.test_deck import BASE, DECK, SHOP, TOOLS, faults, write

PLANNER = {
    "cards/demo/planner.yaml": "id: planner\ndescription: Plans.\nmodel: offline\n",
    SHOP: BASE[SHOP],
}
STEP = "        - {{task: {task!r}, skills: [print], shape: {{printed: string}}}}\n"


def with_example(request: str, task: str) -> dict[str, str | None]:
    """The sound deck with a planner and one example: its request is on line 8, its task on line 10."""
    example = f"    - request: {request!r}\n      steps:\n{STEP.format(task=task)}"
    planning = f"planning:\n  planner: planner\n  executor: planner\n  examples:\n{example}"
    return {**PLANNER, DECK: BASE[DECK] + planning}


@pytest.mark.parametrize(
    ("request_text", "task"),
    [
        ("Print the labels of {sample} and {sample}", "Print {sample}"),
        ("Print the labels of {sample}[ and {sample}]", "Print {sample}"),
        ("Print[ the labels of {first} and {first}]", "Print[ {first}]"),
        ("Print the {1st} sample", "Print {1st} as {'number': 1}, a list [1, 2]"),
        ("Liste die {größe} Proben auf", "Liste die {größe} Proben auf"),
    ],
)
def test_an_example_whose_slots_can_be_told_apart_is_sound(
    tmp_path: Path, request_text: str, task: str
) -> None:
    deck = load_deck(write(tmp_path, with_example(request_text, task)), known=TOOLS)
    assert deck.settings.planning is not None


FAULTS = {
    "a bracket that is never closed": (
        ("Print the label[ of {sample}", "Print {sample}"),
        "demo/deck.yaml:8: brackets of 'Print the label[ of {sample}' do not pair up, or stand in one another; "
        "put between [ and ] what may be missing, and use no other brackets",
    ),
    "brackets in brackets": (
        ("Print the label[ of {sample}[ now]]", "Print it"),
        "demo/deck.yaml:8: brackets of 'Print the label[ of {sample}[ now]]' do not pair up, or stand in one another; "
        "put between [ and ] what may be missing, and use no other brackets",
    ),
    "a name with a hyphen": (
        ("Print {sample-id}", "Print it"),
        "demo/deck.yaml:8: '{sample-id}' in 'Print {sample-id}' is no slot; "
        "a slot is a name of letters, digits and _ in braces, as {sample_id}",
    ),
    "a brace that is never closed": (
        ("Print {sample", "Print it"),
        "demo/deck.yaml:8: '{' in 'Print {sample' is no slot; "
        "a slot is a name of letters, digits and _ in braces, as {sample_id}",
    ),
    "a slot that may be missing where it is meant again": (
        ("List samples[ of {sample}] and print {sample}", "Print[ {sample}]"),
        "demo/deck.yaml:8: {sample} of 'List samples[ of {sample}] and print {sample}' stands in brackets first, "
        "and once more where these may be missing; give the second slot a name of its own",
    ),
    "a slot of the task that the request lacks": (
        ("Print the label of {sample_id}", "Print {sample}"),
        "demo/deck.yaml:10: the request has no slot 'sample' for the task 'Print {sample}': did you mean 'sample_id'?",
    ),
    "a slot of the task of a request that has none": (
        ("Print the label", "Print {sample}"),
        "demo/deck.yaml:10: the request has no slot 'sample' for the task 'Print {sample}': "
        "write {sample} in the request, or a word here",
    ),
    "a task with a name that is no slot": (
        ("Print the label of {sample_id}", "Print {sample id}"),
        "demo/deck.yaml:10: '{sample id}' in the task 'Print {sample id}' is no slot; "
        "a slot is a name of letters, digits and _ in braces, as {sample_id}",
    ),
    "a task that always needs what may be missing": (
        ("List the samples[ of {species}]", "List {species}"),
        "demo/deck.yaml:10: {species} may be missing in the request; put it in brackets in the task 'List {species}' too",
    ),
    "a bracket of a task that is never closed": (
        ("List the samples[ of {species}]", "List the samples[ of {species}"),
        "demo/deck.yaml:10: brackets of the task 'List the samples[ of {species}' do not pair up, "
        "or stand in one another; take them out",
    ),
}
"""What is wrong -> the request and the task, and the first fault of the report."""


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("shape: {printed: string}, input_from_steps: [1, 4]", "works on step 4, which is none"),
        ("shape: {printed: string}, input_from_step: 2", "works on step 2, which is none"),
        ("shape: {printed: 'arry<string>'}", "did you mean 'array'"),
    ],
)
def test_a_step_of_an_example_that_no_plan_could_have_is_a_fault_of_its_line(
    tmp_path: Path, step: str, expected: str
) -> None:
    files = with_example("Print the labels", "Print them")
    files[DECK] = f"{files[DECK]}        - {{task: Print, skills: [print], {step}}}\n"
    (fault,) = faults(tmp_path, files)
    assert fault.startswith("demo/deck.yaml:11: ") and expected in fault


@pytest.mark.parametrize("kind", FAULTS)
def test_a_placeholder_or_a_bracket_that_cannot_be_meant_is_a_fault_of_its_line(
    tmp_path: Path, kind: str
) -> None:
    example, expected = FAULTS[kind]
    assert faults(tmp_path, with_example(*example))[0] == expected
