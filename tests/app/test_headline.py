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
from kit.wire import Kit, open_kit
from kit.worlds.consumer.tools import TOOL_IDS
from tests.kits import ALICE
from tests.plan_kits import draft, gives_rows, plan_kit
from tests.planning.test_plans import raises

EMBEDDED = Settings(store=":memory:", pace=0.0, model="offline")
MIXED = "My receipt didn't scan, how many points do I have, and find coffee deals"
ALL = ("rewards=raise", "shop=raise", "support=raise")


async def turn(
    kit: Kit, pattern: str, faults: tuple[str, ...] = (), cap: int | None = None
) -> TurnView:
    session = kit.session(f"{pattern} {faults} {cap}")
    reply = await kit.ask(MIXED, session, pattern=pattern, faults=faults, cap=cap)
    return advance(TurnView(), reply.events)


def told(view: TurnView) -> tuple[str, str, int]:
    """Returns a turn's headline, its tone, and how many parts were left out."""
    line = headline(view)
    return line.text, line.tone, len(view.skipped)


@pytest.mark.req("K-15")
@pytest.mark.parametrize("pattern", PATTERNS)
async def test_every_pattern_says_how_much_was_answered(pattern: str):
    async with open_kit(EMBEDDED, faults=True) as kit:
        whole = await turn(kit, pattern)
        assert not [
            tool for tool in TOOL_IDS if tool.replace("_", " ").capitalize() in whole.answer
        ]
        assert told(whole) == ("Answered", "good", 0)
        foreign = await turn(kit, pattern, ("rewards=foreign_principal",))
        assert told(foreign) == ("2 of 3 answered", "warn", 0)
        if pattern == "mediated":
            (note,) = [step.note for step in foreign.steps if step.agent == "rewards"]
            assert note == "its data could not be confirmed as yours"
            assert f"about rewards: {note}" in foreign.answer
        # The gateway's cap is another, and one agent with every tool asks nobody.
        if pattern in ("classifier_gateway", "monolith"):
            return
        # A swarm ends with the first that fails, so that the others are left out.
        assert told(await turn(kit, pattern, ALL))[:2] == ("Could not answer", "bad")
        capped = await turn(kit, pattern, cap=2)
        assert capped.cap_words == "over the limit of 2 at once, 1 left out"
        assert told(capped) == ("2 of 3 answered", "warn", 1) and len(capped.steps) == 2


@pytest.mark.req("K-15")
async def test_a_plan_is_answered_by_what_it_left_and_not_by_each_run_of_its_agents(
    tmp_path: Path,
):
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
