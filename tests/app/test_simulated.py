"""No figure of a simulated model, or of the offline stand-in, stands on a page that does not say so."""

import asyncio
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.core.context import Principal, Session
from kit.runtime.turn import run_turn
from kit.settings import Settings
from kit.wire import open_kit
from tests.app.rooms import app_over, room, shown, turns_in
from tests.plan_kits import draft, plan_kit

VISITOR = Session(id="plans", principal=Principal(tenant_id="acme", user_id="u-001"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a turn of the stand-in and a plan of the same visitor."""
    path = tmp_path_factory.mktemp("simulated") / "kit.db"

    async def turns() -> None:
        async with open_kit(Settings(store=str(path), pace=0, model="offline")) as kit:
            await kit.ask("How many points do I have?", kit.session("mine"))
        planner = plan_kit(path.parent, draft("list them", "rank them", chain=True), name=path.name)
        await run_turn("Which of them are best?", VISITOR, planner)
        planner.store.close()

    asyncio.run(turns())
    with sqlite3.connect(path) as db:  # the plan's scripted model stands for the stand-in
        db.execute("UPDATE turns SET model = 'offline'")
    db.close()
    return path


@pytest.fixture(autouse=True)
def offline(store: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with app_over(store, monkeypatch):
        yield


@pytest.mark.parametrize("name", ["chat", "traces", "metrics", "compare", "plans"])
def test_a_page_with_figures_of_the_stand_in_says_that_they_are_simulated(name: str, store: Path):
    planned, turn = sorted(turns_in(store), key=lambda turn: turn.message, reverse=True)
    addresses = {
        "chat": [{"session": "mine"}],
        "traces": [{}, {"turn": turn.id}],
        "metrics": [{}],
        "compare": [{"turns": turn.id}],
        "plans": [{}, {"plan": f"plan_{planned.id}"}],
    }
    for address in addresses[name]:
        words = shown(room(name, **address).run())
        assert re.search(
            "stand-in are simulated| · simulated|stand-in, simulated|simulated: no language model",
            words,
        ), address
