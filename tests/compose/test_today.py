"""Today is one day: that of the embedded world for prompts, services and page alike, unless KIT_TODAY names another."""

import datetime
from pathlib import Path

import pytest
import yaml

from kit.compose.deck import load_deck
from kit.core.bodies.speech import Component
from kit.core.errors import CodeError, SettingsError
from kit.settings import Settings
from kit.wire import open_kit, today_of
from kit.worlds.consumer.world import load_world
from tests.kits import write_files
from tests.tools.test_own_tools import FILES

EMBEDDED = Settings(store=":memory:", pace=0.0, model="offline")
QUESTIONS = (
    "find coffee deals",
    "which offers end soon?",
    "any restaurant offers for pizza?",
    "which games pay points?",
)


@pytest.mark.req("K-13")
@pytest.mark.parametrize("today", [None, "2026-11-09"])
async def test_nothing_that_is_shown_ends_before_today(today: str | None):
    async with open_kit(EMBEDDED.with_(today=today)) as kit:
        assert kit.today == (today or load_world(EMBEDDED.data).as_of)
        replies = [
            await kit.ask(question, kit.session(f"s{n}")) for n, question in enumerate(QUESTIONS)
        ]
    shown = [
        event.body.payload
        for reply in replies
        for event in reply.events
        if isinstance(event.body, Component)
    ]
    ends = [payload["ends"] for payload in shown if "ends" in payload]
    assert len(ends) > 5 and min(ends) >= kit.today


@pytest.mark.req("K-13")
def test_a_deck_without_a_world_has_this_machines_day(tmp_path: Path):
    deck = _deck(tmp_path)
    assert today_of(EMBEDDED, load_deck(deck)) == datetime.date.today().isoformat()
    with pytest.raises(CodeError, match=r"no function; write one"):
        today_of(EMBEDDED, load_deck(_deck(tmp_path, "kit.settings:HOME")))


def test_a_date_that_is_none_is_refused():
    with pytest.raises(SettingsError, match="KIT_TODAY"):
        Settings.read({"KIT_TODAY": "tomorrow"})


def _deck(folder: Path, today: str | None = None) -> Path:
    write_files(folder, FILES)
    file = folder / "helpdesk" / "deck.yaml"
    file.write_text(
        yaml.safe_dump({**yaml.safe_load(file.read_text()), **({"today": today} if today else {})})
    )
    return file.parent
