"""What a play shows: one verdict a question, read from planted values alone."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kit.conformance.child import COUNTER_QUESTION, FOREIGN, RAW, SECRET
from kit.conformance.scenario import ChildPlan, Question, Scenario

Verdict = Literal["pass", "fail", "void"]
LATE = 0.3
"""Seconds after its end in which a turn's last model call may still be on its way to the endpoint."""
_OWNS_UP = re.compile(
    r"\b(no|not|cannot|nothing|none|unable|fail\w*|error\w*|sorry|missing|unavailable|without|"
    r"time[ds]? ?out|cancel\w*|stop\w*|refus\w*|declin\w*|incomplete|unknown|limit\w*|left out|"
    r"too (long|many|much)|exceed\w*|invalid|reject\w*)\b|n['’]t\b",
    re.I,
)
"""A word by which a sentence can say that something is missing."""
_SENTENCE = re.compile(r"(?<=[.!?:;])\s+")


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of a play after it."""

    text: str
    """What the user reads."""
    error: str = ""
    """What the system raised in place of an answer."""
    seconds: float = 0.0
    end: float = 0.0
    """On the clock of the machine."""
    still_running: Sequence[str] = ()
    """Children at work after the turn and the grace that follows it."""
    receipts: Sequence[tuple[str, str]] = ()
    """Pairs of a child and an event."""
    tools_called: Sequence[str] = ()
    """By the orchestrator's model."""
    refusals: int = 0
    call_times: Sequence[float] = ()
    """When each model call came."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a play: pass where every question is answered with yes, void where its fault never happened."""

    verdict: Verdict
    answers: dict[Question, bool] = field(default_factory=dict[Question, bool])
    word: str = ""
    """Why it is not a pass."""


def judge(scenario: Scenario, evidence: Evidence) -> Judgement:
    """Answers the scenario's questions."""
    if not _has_landed(scenario, evidence):
        word = "its fault did not happen"
        if not evidence.receipts and not evidence.call_times:
            word = "it asked neither its model nor a child"
        if evidence.error:
            word += f"; the turn ended with {evidence.error}"
        return Judgement("void", word=word)
    answers: dict[Question, bool] = {}
    words: list[str] = []
    for question in scenario.questions:
        complaint = _COMPLAINTS[question](scenario, evidence)
        answers[question] = not complaint
        if complaint:
            words.append(complaint)
    if evidence.error and words:
        words.append(f"the turn ended with {evidence.error}")
    return Judgement("fail" if words else "pass", answers, "; ".join(words))


def _has_landed(scenario: Scenario, evidence: Evidence) -> bool:
    """Whether what was to go wrong has gone wrong, by the receipt that each fault leaves.

    A system that never asks the child which is to fail, though its model called it, has itself to
    blame: it is judged by what the user reads.
    """
    number = len(evidence.tools_called)
    match scenario.model:
        case "storm_passes" | "storm_stays":
            return evidence.refusals > 0
        case "unknown_tool":
            return number > len(scenario.calls)
        case _:
            pass
    failing = [child for child in scenario.children if child.fault != "none"]
    events = set(evidence.receipts)
    requests = _requests(evidence)
    for child in failing:
        if (child.name, child.fault) in events:
            return True
    if scenario.model == "none":
        # A system may ask its children without a word of its model.
        number = max(number, len(requests))
    if number < len(scenario.calls):
        return False
    return not failing or any(not requests[child.name] for child in failing)


def _survive(scenario: Scenario, evidence: Evidence) -> str:
    """Which answers of those that were asked for did not reach the user."""
    requests = _requests(evidence)
    losses: list[str] = []
    for child in scenario.calls:
        if child.answers and requests[child.name] and child.value not in evidence.text:
            losses.append(child.name)
    if losses:
        return f"lost the answer of {_names(losses)}"
    return ""


def _missing(scenario: Scenario, evidence: Evidence) -> str:
    """Of whom the user does not read that the answer is missing; an answer that was lost is counted above."""
    requests = _requests(evidence)
    silent: list[str] = []
    for child in scenario.children:
        is_lost = child.answers and child in scenario.calls and requests[child.name]
        if is_lost or child.value in evidence.text:
            continue
        if not _is_owned_up(child, scenario, evidence.text):
            silent.append(child.name)
    if silent:
        return f"does not say that {_names(silent)} is missing"
    return ""


def _requests(evidence: Evidence) -> Counter[str]:
    """How often each child was asked."""
    return Counter(child for child, event in evidence.receipts if event == "asked")


def _is_owned_up(child: ChildPlan, scenario: Scenario, text: str) -> bool:
    """Whether a sentence names the child and says that something is missing; a question back is as good."""
    if child.fault == "asks_back" and COUNTER_QUESTION in text:
        return True
    values = [plan.value for plan in scenario.children] + [child.lie]
    for unit in _units(text):
        is_clean = not any(value in unit for value in values)
        if is_clean and child.name in unit.lower() and _OWNS_UP.search(unit):
            return True
    return False


def _units(text: str) -> Iterator[str]:
    """The lines of a text, and the sentences of each."""
    for line in text.splitlines():
        yield line
        yield from _SENTENCE.split(line)


def _true(scenario: Scenario, evidence: Evidence) -> str:
    """What is said that is not so."""
    if FOREIGN in evidence.text:
        return "shows the data of another principal"
    invented: list[str] = []
    doubted: list[str] = []
    for child in scenario.children:
        if child.lie in evidence.text:
            invented.append(child.name)
        elif scenario.id == "all_well" and _is_owned_up(child, scenario, evidence.text):
            doubted.append(child.name)
    if invented:
        return f"invents the answer of {_names(invented)}"
    if doubted:
        return f"says that {_names(doubted)} is missing, which is not so"
    return ""


def _raw(scenario: Scenario, evidence: Evidence) -> str:
    """What is shown that is no words for a user."""
    if SECRET in evidence.text:
        return "shows a key"
    if "Traceback (most recent call last)" in evidence.text:
        return "shows a traceback"
    if RAW in evidence.text:
        return "shows an error text"
    return ""


def _running(scenario: Scenario, evidence: Evidence) -> str:
    """What goes on after the end."""
    if evidence.still_running:
        return f"leaves {_names(sorted(set(evidence.still_running)))} running"
    late = [moment for moment in evidence.call_times if moment > evidence.end + LATE]
    if evidence.end and late:
        return "calls models after its end"
    return ""


def _cost(scenario: Scenario, evidence: Evidence) -> str:
    """What was too dear: model calls, children over the cap, an act done twice."""
    if evidence.error.startswith("no answer within"):
        return f"gave {evidence.error}"
    if len(evidence.call_times) > scenario.most_calls:
        return f"made {len(evidence.call_times)} model calls, {scenario.most_calls} at most"
    requests = _requests(evidence)
    if scenario.cap is not None and len(requests) > scenario.cap:
        return f"asked {len(requests)} where {scenario.cap} are allowed"
    for child in scenario.children:
        if child.fault == "acts" and requests[child.name] > 1:
            return f"did the act of {child.name} {requests[child.name]} times"
    return ""


_COMPLAINTS = {
    "survive": _survive,
    "missing": _missing,
    "true": _true,
    "raw": _raw,
    "running": _running,
    "cost": _cost,
}


def _names(names: Sequence[str]) -> str:
    if len(names) > 4:
        return f"{', '.join(names[:3])} and {len(names) - 3} more"
    return " and ".join(names)
