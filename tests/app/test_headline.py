"""The headline of a turn counts what was answered, whatever the pattern; steps and answer word a failure alike."""

import pytest

from kit.patterns import PATTERNS
from kit.ui.shared.turn_facts import headline
from kit.ui.shared.turn_fold import advance
from kit.ui.shared.turn_view import TurnView
from kit.wire import Kit, open_kit
from tests.kits import MIXED, OFFLINE

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
    async with open_kit(OFFLINE, faults=True) as kit:
        foreign = await turn(kit, pattern, ("rewards=foreign_principal",))
        assert told(foreign) == ("2 of 3 answered", "warn", 0)
        if pattern == "mediated":
            (note,) = [step.note for step in foreign.steps if step.agent == "rewards"]
            assert f"about rewards: {note}" in foreign.answer
        # The gateway's cap is another, and one agent with every tool asks nobody.
        if pattern in ("classifier_gateway", "monolith"):
            return
        # A swarm ends with the first that fails, so that the others are left out.
        assert told(await turn(kit, pattern, ALL))[:2] == ("Could not answer", "bad")
        capped = await turn(kit, pattern, cap=2)
        assert capped.cap_words == "over the limit of 2 at once, 1 left out"
        assert told(capped) == ("2 of 3 answered", "warn", 1) and len(capped.steps) == 2
