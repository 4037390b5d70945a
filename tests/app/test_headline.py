"""The headline of a turn counts what was answered, whatever the pattern; steps and answer word a failure alike."""

from pathlib import Path

import pytest

from kit.patterns import PATTERNS
from kit.runtime.turn import run_turn
from kit.settings import Settings
from kit.ui.compare.difference import compare
from kit.ui.shared.turn_facts import facts, headline
from kit.ui.shared.turn_fold import advance
from kit.ui.shared.turn_view import TurnView
from kit.wire import open_kit
from kit.worlds.consumer.tools import TOOL_IDS
from tests.kits import ALICE, classifies
from tests.plan_kits import draft, gives_rows, plan_kit
from tests.planning.test_plans import raises

EMBEDDED = Settings(store=":memory:", pace=0.0, model="offline")
MIXED = "My receipt didn't scan, how many points do I have, and find coffee deals"
ALL = ("rewards=raise", "shop=raise", "support=raise")


async def turn(pattern: str, faults: tuple[str, ...] = (), cap: int | None = None) -> TurnView:
    async with open_kit(EMBEDDED, faults=True) as kit:
        reply = await kit.ask(MIXED, kit.session("s"), pattern=pattern, faults=faults, cap=cap)
    return advance(TurnView(), reply.events)


def assert_left_out(view: TurnView, count: int, words: str) -> None:
    """Asserts that a turn's headline counts the parts that it left out, and its facts do not deny them."""
    assert (headline(view).text, headline(view).tone) == (words, "warn")
    assert len(view.skipped) == count
    assert "nothing was owed" not in {fact.text for fact in facts(view)}


@pytest.mark.req("K-15")
@pytest.mark.parametrize("pattern", PATTERNS)
async def test_every_pattern_says_how_much_was_answered(pattern: str) -> None:
    whole, foreign = await turn(pattern), await turn(pattern, ("rewards=foreign_principal",))
    # The monolith looks up two of the three parts; every other pattern asks for all of them.
    if pattern == "monolith":
        assert_left_out(whole, 1, "2 of 3 answered")
    else:
        assert (headline(whole).text, headline(whole).tone, whole.skipped) == (
            "Answered",
            "good",
            (),
        )
        assert (headline(foreign).text, headline(foreign).tone) == ("2 of 3 answered", "warn")
    assert not [tool for tool in TOOL_IDS if tool.replace("_", " ").capitalize() in whole.answer]


@pytest.mark.req("K-15")
async def test_two_sub_agents_asked_for_one_part_do_not_answer_the_parts_left_out() -> None:
    models = classifies("support", "ereceipts", part="My receipt didn't scan")
    async with open_kit(EMBEDDED, models=models) as kit:
        reply = await kit.ask(MIXED, kit.session("s"), pattern="classifier_gateway")
    view = advance(TurnView(), reply.events)
    assert_left_out(view, 2, "2 of 4 answered")
    assert [step.agent for step in view.steps] == ["support", "ereceipts"]
    assert not [tool for tool in TOOL_IDS if tool.replace("_", " ").capitalize() in view.answer]


@pytest.mark.req("K-15")
@pytest.mark.parametrize("pattern", ["mediated", "direct", "supervisor", "swarm", "a2a"])
async def test_a_turn_in_which_every_part_failed_could_not_be_answered(pattern: str) -> None:
    view = await turn(pattern, ALL)
    assert (headline(view).text, headline(view).tone) == ("Could not answer", "bad")


@pytest.mark.req("K-15")
@pytest.mark.parametrize("pattern", ["mediated", "direct", "supervisor", "swarm", "a2a"])
async def test_parts_over_the_cap_are_counted_and_named(pattern: str) -> None:
    view = await turn(pattern, cap=2)
    assert view.cap_words == "over the limit of 2 at once, 1 left out"
    assert headline(view).text == "2 of 3 answered"
    assert len(view.skipped) == 1 and len(view.steps) == 2


async def test_a_step_and_the_answer_word_somebody_elses_data_alike() -> None:
    view = await turn("mediated", ("rewards=foreign_principal",))
    (note,) = [step.note for step in view.steps if step.agent == "rewards"]
    assert (
        note == "its data could not be confirmed as yours"
        and f"about rewards: {note}" in view.answer
    )


@pytest.mark.req("K-15")
async def test_a_plan_is_answered_by_what_it_left_and_not_by_each_run_of_its_agents(
    tmp_path: Path,
) -> None:
    """A step failed and was planned anew; or there is no plan, which no agent failed of."""
    runs = iter([raises, gives_rows])
    mended = plan_kit(
        tmp_path, draft("one"), draft("one again"), doing=lambda *args: next(runs)(*args)
    )
    hopeless = plan_kit(tmp_path, "nobody flies", name="other.db")
    replies = {
        "A": await run_turn("Do it.", ALICE, mended),
        "B": await run_turn("Do it.", ALICE, hopeless),
    }
    views = {name: advance(TurnView(), reply.events) for name, reply in replies.items()}
    assert [headline(view).text for view in views.values()] == ["Answered", "Could not answer"]
    assert not any(fact.name == "cap" for view in views.values() for fact in facts(view)), (
        "a plan has limits of its own"
    )
    (part,) = compare({"B": views["B"]})["B"]
    assert (part.name, part.reason, part.silent) == ("Planner", "found nothing to say", False)
