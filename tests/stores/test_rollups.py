"""Metrics of all time are read from sums, and say what the turns themselves say."""

import random
from typing import Any

import pytest

from kit.core.record import TurnRecord
from kit.metrics.sample import Sample
from kit.metrics.summary import Metrics, measure_all, metrics
from kit.stores.rollup import CHUNK
from kit.stores.sqlite import SqliteStore
from kit.stores.tally import Tally, tally_of
from tests.metrics.test_metrics import some_turns

TENANTS = ("acme", "globex", "initech")
HOUR = 3600.0


async def many(store: SqliteStore, count: int) -> list[TurnRecord]:
    """Turns of many fates, an hour apart, stored in the order in which they began."""
    kit, _ = await some_turns(40, seed=11)
    played, rng = kit.store.turns(limit=40), random.Random(5)
    turns = [
        rng.choice(played).model_copy(
            update={"id": f"t{n}", "started_at": n * HOUR, "tenant_id": rng.choice(TENANTS)}
        )
        for n in range(count)
    ]
    for turn in turns:
        store.end_turn(turn, [], [])
    return turns


def sums(store: SqliteStore) -> int:
    return store.read("SELECT count(DISTINCT through) FROM rollups")[0][0]


def figures(metrics: Metrics) -> dict[tuple[str, str], Any]:
    return {(row["metric"], row["of"]): row["value"] for row in metrics.rows()}


def agree(
    store: SqliteStore, turns: list[TurnRecord], since: float | None, tenant: str | None
) -> None:
    mine = [
        turn
        for turn in turns
        if tenant in (None, turn.tenant_id) and turn.started_at >= (since or 0.0)
    ]
    assert figures(metrics(store, since, tenant)) == pytest.approx(
        figures(measure_all(Sample(tally_of(mine)))), abs=1e-6
    )
    found = {(one.turn_id, one.user_id) for one in store.tally(tenant, since).mismatches}
    assert found == {(turn.id, turn.user_id) for turn in mine if turn.measures.mismatches}


async def test_sums_and_the_turns_beside_them_make_the_same_metrics_for_every_tenant_and_window(
    tmp_path: Any,
) -> None:
    store = SqliteStore(tmp_path / "kit.db")
    turns = await many(store, 2 * CHUNK + 300)
    for tenant in (None, *TENANTS):
        for since in (
            None,
            0.5 * CHUNK * HOUR,
            CHUNK * HOUR,
            1.7 * CHUNK * HOUR,
            (2 * CHUNK + 100) * HOUR,
            9 * CHUNK * HOUR,
        ):
            agree(store, turns, since, tenant)
    assert sums(store) == 2
    store.close()


async def test_a_turn_that_changes_or_goes_is_summed_up_anew() -> None:
    store = SqliteStore(":memory:")
    turns = await many(store, 2 * CHUNK)
    agree(store, turns, None, None)
    turns[CHUNK + 5] = turns[CHUNK + 5].model_copy(update={"seconds": 77.0, "cap_behavior": "over"})
    store.end_turn(turns[CHUNK + 5], [], [])
    assert sums(store) == 1, "what came before it stands"
    agree(store, turns, None, None)
    assert sums(store) == 2
    store._db.execute("DELETE FROM turns WHERE id = 't7'")
    agree(store, [turn for turn in turns if turn.id != "t7"], None, None)


async def test_a_turn_that_runs_is_waited_for_and_its_mismatches_count_at_once() -> None:
    store = SqliteStore(":memory:")
    running = TurnRecord(
        id="r",
        session_id="s",
        tenant_id="acme",
        user_id="u",
        message="m",
        pattern="mediated",
        started_at=0.0,
    )
    mismatches = running.measures.model_copy(update={"mismatches": (1.5,)})
    store.begin_turn(running.model_copy(update={"measures": mismatches}))
    turns = await many(store, CHUNK + 10)
    assert "r" in {one.turn_id for one in store.tally().mismatches}
    assert (metrics(store).number("turns"), sums(store)) == (CHUNK + 10, 0)
    ended = running.model_copy(update={"seconds": 3.0, "status": "ok"})
    store.end_turn(ended, [], [])
    agree(store, [ended, *turns], None, None)
    assert sums(store) == 1


def test_a_tally_is_read_back_as_it_was_written() -> None:
    assert Tally.load(Tally().dump()) == Tally()


@pytest.mark.parametrize("odd", ["no JSON", "[]", '{"agents": [{"seconds": 1}]}', '{"spent": 7}'])
async def test_a_turn_that_somebody_else_wrote_breaks_no_sum(odd: str) -> None:
    store = SqliteStore(":memory:")
    turns = await many(store, CHUNK + 5)
    store._db.execute("UPDATE turns SET measures = :odd WHERE id IN ('t3', 't1003')", {"odd": odd})
    assert CHUNK + 3 <= metrics(store).number("turns") <= len(turns) and sums(store) == 1
