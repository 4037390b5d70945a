"""What people disliked becomes a case file, and a grid plays it."""

from contextlib import closing
from pathlib import Path

from kit.bench.case import read_cases
from kit.bench.feedback_cases import disliked
from kit.core.record import Feedback
from kit.runtime.clock import run_virtual
from kit.settings import Settings
from kit.stores.sqlite import SqliteStore
from kit.wire import open_kit
from tests.cli.test_cli import run
from tests.grids.test_grid import play, spec_of

POINTS, DEALS = "How many points do I have?", "find coffee deals and show me my receipts"


async def rated(path: Path) -> None:
    """Three turns of one conversation, the last one disliked, and a disliked one of another tenant."""
    async with open_kit(
        Settings(store=str(path), pace=0.0, model="offline", today="2026-11-01")
    ) as kit:
        for question in ("hello", POINTS, DEALS):
            last = await kit.ask(question, kit.session("mine"))
            kit.store.give_feedback(Feedback(turn_id=last.turn_id, score=1))
        kit.store.give_feedback(Feedback(turn_id=last.turn_id, score=0, note="asked the wrong one"))
        reply = await kit.ask(POINTS, kit.session("theirs", tenant="globex", user="u-007"))
        kit.store.give_feedback(Feedback(turn_id=reply.turn_id, score=0))


def test_a_disliked_turn_is_a_case_with_its_conversation_before_it_and_a_grid_plays_it(
    tmp_path: Path,
):
    store, file = tmp_path / "kit.db", tmp_path / "thumbs.jsonl"
    run_virtual(rated(store))
    told = run("data", "cases", str(file), KIT_STORE=str(store))
    assert told.returncode == 0 and "2 cases of turns with a thumb down" in told.stdout
    mine, theirs = read_cases(file)
    assert [ask.user for ask in mine.turns] == ["hello", POINTS, DEALS] and mine.scored == (2,)
    assert (
        set(mine.turns[-1].expected) == {"shop", "ereceipts"}
        and mine.turns[1].assistant
        and "4,975" in mine.turns[1].assistant
    )
    assert (mine.source, theirs.source, str(theirs.principal)) == (
        "thumb down: asked the wrong one",
        "thumb down",
        "globex/u-007",
    )
    grid = spec_of(
        tmp_path,
        models=["offline"],
        specs={},
        cases=[{"file": str(file)}],
        sub_agents="world",
        scorers=["exact"],
    )
    played, rows = play(grid, tmp_path / "out")
    assert played.complete and {row["case"] for row in rows} == {mine.id, theirs.id}
    assert [row["scores"]["exact"] for row in rows] == [1.0, 1.0], "the stand-in routes as it did"
    with closing(SqliteStore(store)) as rated_store:
        [case] = disliked(rated_store, "globex")
        assert case == theirs
        rated_store.give_feedback(Feedback(turn_id=case.id.removeprefix("thumb-"), score=1))
        assert list(disliked(rated_store, "globex")) == [], "it is liked by now"
