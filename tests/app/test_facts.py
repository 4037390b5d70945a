"""What the turn panel says: a fold over events, in words."""

from typing import get_args

import pytest

from kit.core.bodies.call import Envelope, ToolEnded
from kit.core.bodies.guard import GuardActed, GuardAction
from kit.core.bodies.turn import TurnStarted
from kit.core.event import Body
from kit.core.fault import CATALOGUE, RAW, Fault
from kit.core.outcome import Usage
from kit.ui.shared.turn_facts import Fact, facts, fault_words
from kit.ui.shared.turn_fold import advance
from kit.ui.shared.turn_view import TurnView
from tests.app.logs import WHO, Stamped, begin, end, stamp


def known(*bodies: Body, over: bool = True) -> dict[str, Fact]:
    """Name -> fact, of a turn with these events in it."""
    rest: list[Stamped] = [(0.1, "s1", None, body) for body in bodies]
    log = stamp([*begin(), *rest, *(end("done", "rewards") if over else [])])
    return {fact.name: fact for fact in facts(advance(TurnView(), log))}


def envelope(verified: bool) -> Envelope:
    return Envelope(
        agent="rewards",
        domain_type="rewards",
        enricher_id="balance",
        status="ok",
        principal_verified=verified,
    )


def test_foreign_replies_are_counted_apart_from_verified_ones():
    both = known(envelope(True), envelope(False))["principal"]
    assert [tag.text for tag in both.tags] == ["1 verified", "1 blocked"]
    assert (both.text, both.tags[1].tone) == (str(WHO), "bad")
    assert [tag.text for tag in known()["principal"].tags] == ["none was fetched"]
    looked_up = ToolEnded(agent="rewards", tool="stock", call_id="c", result="4 packs")
    assert [tag.text for tag in known(looked_up)["principal"].tags] == ["not checked"]


@pytest.mark.parametrize("action", get_args(GuardAction))
def test_every_act_of_a_guard_is_worded_without_its_raw_reason(action: GuardAction):
    acted = GuardActed(guard="failsafe", agent="offer_details", action=action, reason=RAW)
    (line,) = known(acted)["guards"].lines
    assert RAW not in line and "_" not in line and "{" not in line and line[0].isupper()


def test_what_was_made_to_fail_is_told_in_words_and_outlives_its_catalogue():
    started = TurnStarted(
        message="q",
        session_id="s",
        principal=WHO,
        pattern="p",
        started_at=1.0,
        faults=("rewards=hang:3", "a=gone"),
    )
    (fact,) = [
        fact
        for fact in facts(advance(TurnView(), stamp([(0.0, "s1", None, started)])))
        if fact.name == "faults"
    ]
    assert fact.lines == ("Rewards does not answer in time", "a=gone")
    assert all(
        Fault.from_text(str(Fault(where="a", kind=kind))).kind == kind and fault_words(f"a={kind}")
        for kind in CATALOGUE
    )


def test_who_answered_directly_asked_nobody_and_a_turn_without_a_model_cost_nothing():
    for usage, cost in (
        (Usage(input_tokens=1, cost=0.0), "$0"),
        (Usage(), "nothing: no model was asked"),
    ):
        direct = stamp([*begin("hi"), *end("Hello!", usage=usage)])
        told = {fact.name: fact.text for fact in facts(advance(TurnView(), direct))}
        assert told["agents"] == "nobody: answered directly" and told["cost"] == cost
