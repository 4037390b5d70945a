"""The page Cards says who is on which version and what the judges say; the page Traces shows a verdict at its span."""

import asyncio
from pathlib import Path

import pytest

from kit.bench.shadow import shadow_judges
from kit.runtime.handle import Reply
from kit.wire import open_kit
from tests.app.rooms import app_over, room, shown
from tests.evolve.shared_deck import (
    BALANCE,
    HALF,
    gaining_a_gift,
    models,
    sessions_above,
    sessions_below,
    settings,
    write_deck,
)

GIFT = '''def gift() -> str:
    """Names a gift."""
    return "a mug"


TOOLS = [gift]
'''


def ask_both(deck: Path, store: Path, sessions: int) -> Reply:
    """Asks in so many sessions of each version, has all judged, and returns the last reply, of the version in place."""

    async def play() -> Reply:
        names = (*sessions_below(0.5, sessions), *sessions_above(0.5, sessions))
        async with (
            open_kit(settings(deck, str(store)), models=models()) as kit,
            shadow_judges(kit) as judges,
        ):
            replies = [await kit.ask(BALANCE, kit.session(name, "acme", "u-001")) for name in names]
            assert judges is not None
            await judges.drain()
        return replies[-1]

    return asyncio.run(play())


@pytest.mark.req("SO-9", "SO-10")
def test_the_pages_say_who_is_on_what_and_what_the_judges_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    newer = gaining_a_gift("since: 2999-01-01")
    own_tools = HALF + "tools: [./tools.py:TOOLS]\n"
    deck = write_deck(tmp_path, deck=own_tools, rewards_next=newer)
    (deck / "tools.py").write_text(GIFT)
    store = tmp_path / "kit.db"
    reply = ask_both(deck, store, 5)
    with app_over(store, monkeypatch, TENANT="acme", USER="u-001"):
        monkeypatch.setenv("KIT_DECK", str(deck))
        text = shown(room("cards").run())
        assert "Two versions of rewards share the sessions" in text
        assert "not decided yet" in text and "50.0%** of the sessions have `2-" in text
        assert "in 5 sessions" in text and "cannot tell yet" in text
        assert "evolve promote rewards" in text
        assert "not yet" in text and "it is tried for 14 days first" in text
        span = next(span for span in reply.trace.spans if span.agent == "rewards")
        trace = shown(room("traces", turn=reply.turn_id, span=span.id).run())
        assert "gavel: 0%" in trace and "Judged by rule" in trace and "Rewards 1\\-" in trace
