"""Each question of the contract is answered with yes where a play is right, and with no where it is wrong in that way."""

from dataclasses import replace

import pytest

from kit.conformance.child import COUNTER_QUESTION, FOREIGN, RAW, SECRET
from kit.conformance.judge import Evidence, judge
from kit.conformance.scenario import BY_ID, Question, Scenario

RAISES = BY_ID["raises"]
FLIGHTS, HOTELS, TRAINS = RAISES.children


def evidence_of(scenario: Scenario, text: str) -> Evidence:
    """What a play leaves in which all children were asked and each fault happened."""
    receipts: list[tuple[str, str]] = []
    for child in scenario.calls:
        receipts.append((child.name, "asked"))
        if child.fault != "none":
            receipts.append((child.name, child.fault))
    called = [child.name for child in scenario.calls]
    return Evidence(
        text,
        seconds=1.0,
        end=10.0,
        receipts=receipts,
        tools_called=called,
        call_times=(9.0, 9.5),
    )


RIGHT = evidence_of(
    RAISES, f"{FLIGHTS.answer} {TRAINS.answer} I could not get an answer about hotels."
)
WELL = evidence_of(BY_ID["all_well"], f"{FLIGHTS.answer} {HOTELS.answer} {TRAINS.answer}")
WRONG: list[tuple[Question, Evidence]] = [
    ("survive", replace(RIGHT, text=f"{FLIGHTS.answer} I could not reach hotels.")),
    ("missing", replace(RIGHT, text=f"{FLIGHTS.answer} {TRAINS.answer} All is well with hotels.")),
    ("true", replace(RIGHT, text=f"{RIGHT.text} Your hotels reference is {HOTELS.lie}.")),
    ("raw", replace(RIGHT, text=f"{RIGHT.text} [{RAW}]")),
    ("raw", replace(RIGHT, text=f"{RIGHT.text} {SECRET}")),
    ("raw", replace(RIGHT, text=f"{RIGHT.text} Traceback (most recent call last)")),
    ("running", replace(RIGHT, still_running=("hotels",))),
    ("running", replace(RIGHT, call_times=(9.0, 9.5, 12.0))),
    ("cost", replace(RIGHT, call_times=(9.0,) * (RAISES.most_calls + 1))),
    ("cost", replace(RIGHT, error="no answer within 15 s")),
]


@pytest.mark.parametrize(("question", "evidence"), WRONG)
def test_what_is_wrong_in_one_way_fails_that_question_alone(question: Question, evidence: Evidence):
    assert judge(RAISES, RIGHT).verdict == "pass"
    judgement = judge(RAISES, evidence)
    assert judgement.verdict == "fail"
    assert [name for name, holds in judgement.answers.items() if not holds] == [question]


def test_a_fault_that_did_not_happen_makes_a_play_void():
    receipts = [(child.name, "asked") for child in RAISES.children]
    assert judge(RAISES, replace(RIGHT, receipts=receipts)).verdict == "void"
    assert judge(BY_ID["storm_stays"], RIGHT).verdict == "void"
    assert judge(BY_ID["unknown_tool"], RIGHT).verdict == "void"
    crashed = judge(RAISES, Evidence("", error="RuntimeError: x"))
    assert crashed.verdict == "void"
    assert crashed.word == (
        "it asked neither its model nor a child; the turn ended with RuntimeError: x"
    )
    assert judge(BY_ID["skips_one"], replace(WELL, tools_called=())).verdict == "void"


def test_a_system_that_asks_its_children_itself_is_judged_by_what_became_of_them():
    assert judge(RAISES, replace(RIGHT, tools_called=())).verdict == "pass"
    assert judge(BY_ID["all_well"], replace(WELL, tools_called=())).verdict == "pass"


def test_a_system_that_never_asks_the_child_is_judged_by_what_it_says():
    receipts = [("flights", "asked"), ("trains", "asked")]
    assert judge(RAISES, replace(RIGHT, receipts=receipts)).verdict == "pass"
    silent = replace(RIGHT, receipts=receipts, text=f"{FLIGHTS.answer} {TRAINS.answer}")
    assert judge(RAISES, silent).word == "does not say that hotels is missing"


def test_what_was_left_out_over_the_cap_must_be_owned_up_to_and_never_asked():
    scenario = BY_ID["over_cap"]
    four = scenario.children[:4]
    names = ", ".join(child.name for child in scenario.children[4:])
    text = f"{' '.join(child.answer for child in four)}\nI left out {names} for now."
    evidence = replace(
        evidence_of(scenario, text), receipts=[(child.name, "asked") for child in four]
    )
    assert judge(scenario, evidence).verdict == "pass"
    receipts = [(child.name, "asked") for child in scenario.children]
    assert not judge(scenario, replace(evidence, receipts=receipts)).answers["cost"]
    assert not judge(scenario, replace(evidence, text=text.splitlines()[0])).answers["missing"]


def test_an_act_done_twice_fails():
    scenario = BY_ID["killed"]
    text = " ".join(child.answer for child in scenario.children)
    evidence = evidence_of(scenario, text)
    assert judge(scenario, evidence).verdict == "pass"
    again = [*evidence.receipts, ("payments", "asked")]
    assert (
        judge(scenario, replace(evidence, receipts=again)).word == "did the act of payments 2 times"
    )


def test_the_data_of_another_principal_is_nothing_to_show():
    scenario = BY_ID["foreign_data"]
    text = f"{FLIGHTS.answer} {TRAINS.answer} The data of hotels could not be confirmed."
    assert judge(scenario, evidence_of(scenario, text)).verdict == "pass"
    shown = judge(scenario, evidence_of(scenario, f"{text} {FOREIGN}"))
    assert shown.word == "shows the data of another principal"


def test_a_question_back_tells_the_user_what_is_missing():
    scenario = BY_ID["asks_back"]
    text = f"{FLIGHTS.answer} {TRAINS.answer} {COUNTER_QUESTION}"
    assert judge(scenario, evidence_of(scenario, text)).verdict == "pass"


def test_an_apology_for_an_answer_that_is_there_is_untrue():
    scenario = BY_ID["all_well"]
    text = "\n".join(child.answer for child in scenario.children)
    assert judge(scenario, evidence_of(scenario, text)).verdict == "pass"
    doubting = evidence_of(scenario, f"{text}\nI have no answer about hotels.")
    assert not judge(scenario, doubting).answers["true"]
