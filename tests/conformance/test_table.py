"""The stored result is read, compared and shown: no cell is written by hand."""

import copy

from benchmarks.conformance.figure import figure
from benchmarks.conformance.page import differences, page
from kit.conformance.scenario import COMPOSERS, SCENARIOS
from kit.conformance.table import Table
from kit.settings import HOME

RESULT = Table.read(HOME / "data" / "results" / "reference" / "conformance.json")


def test_the_stored_result_holds_every_system_in_every_scenario_and_no_void():
    assert len(RESULT.systems) >= 9 and len(SCENARIOS) >= 20
    for system in RESULT.systems:
        marks = RESULT.marks(system)
        assert len(marks) == len(SCENARIOS) * len(COMPOSERS) * 2
        assert "void" not in marks.values(), system["name"]
        assert system["defaults_source"] and system["best_source"] and system["packages"]
        is_kit = system["name"] == "subagent-kit"
        passes, plays = RESULT.score(system, best=True)
        assert passes == plays or not is_kit


def test_the_page_and_the_figure_are_what_the_stored_result_says():
    text = (HOME / "docs" / "conformance.md").read_text()
    assert text.rstrip().endswith(page(RESULT).rstrip())
    drawing = (HOME / "docs" / "figures" / "conformance.svg").read_text()
    assert drawing == figure(RESULT)
    for mark, colour in {"pass": "#2f81c7", "fail": "#e0823d", "not offered": "#a8b0b8"}.items():
        count = 0
        for system in RESULT.systems:
            marks = RESULT.marks(system)
            count += [marks[key] for key in marks if key[2]].count(mark)
        assert drawing.count(colour) == count


def test_a_cell_that_comes_out_differently_is_named():
    content = copy.deepcopy(dict(RESULT.content))
    assert differences(RESULT, Table(content)) == []
    cell = content["systems"][0]["cells"][0]
    cell["verdict"] = "fail"
    assert differences(RESULT, Table(content)) == [
        "subagent-kit, defaults, faithful, all_well: pass, then fail"
    ]


def test_what_a_system_does_not_offer_is_shown_as_that_and_never_as_a_pass():
    (gather,) = [system for system in RESULT.systems if system["name"] == "gather loop"]
    system = gather | {"not_offered": {"over_cap": "no cap", "all_well": "a slip"}}
    marks = RESULT.marks(system)
    assert marks["over_cap", "faithful", True] == "not offered"
    assert marks["all_well", "faithful", True] == "pass"
