"""Metrics of all time are read from sums, and say what the turns themselves say."""

import random
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kit.core.record import TurnRecord
from kit.metrics.sample import Sample
from kit.metrics.summary import Metrics, measure_all, metrics
from kit.runtime.clock import run_virtual
from kit.stores.copying import copy_store
from kit.stores.opening import open_store
from kit.stores.rollup import CHUNK
from kit.stores.sqlite import SqliteStore
from kit.stores.tally import tally_of
from kit.stores.turn_store import TurnStore
from tests.metrics.test_metrics import some_turns
from tests.sample_turn import a_turn
from tests.stores.conftest import DATABASES, new_place

TENANTS = ("acme", "globex", "initech")
HOUR = 3600.0


async def many(store: TurnStore, count: int) -> list[TurnRecord]:
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


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[TurnRecord]]:
    """A store that holds two sums' worth of turns and some more, and these turns."""
    place = new_place("sqlite", tmp_path_factory.mktemp("rollups"))
    with closing(open_store(place)) as store:
        return place, run_virtual(many(store, 2 * CHUNK + 300))


@pytest.fixture
def store(filled: tuple[str, list[TurnRecord]], tmp_path: Path) -> Iterator[TurnStore]:
    """The same turns in a store of the test's own."""
    with closing(open_store(str(shutil.copy(filled[0], tmp_path)))) as copied:
        yield copied


@pytest.fixture
def turns(filled: tuple[str, list[TurnRecord]]) -> list[TurnRecord]:
    return list(filled[1])


def sums(store: TurnStore) -> int:
    return store.read("SELECT count(DISTINCT through) FROM rollups")[0][0]


def figures(metrics: Metrics) -> dict[tuple[str, str], Any]:
    return {(row["metric"], row["of"]): row["value"] for row in metrics.rows()}


def agree(
    store: TurnStore, turns: list[TurnRecord], since: float | None, tenant: str | None
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


def test_sums_and_the_turns_beside_them_make_the_same_metrics_for_every_tenant_and_window(
    store: TurnStore, turns: list[TurnRecord]
) -> None:
    for hours in (0.5 * CHUNK, 2 * CHUNK + 100, 9 * CHUNK):
        agree(store, turns, hours * HOUR, None)
    agree(store, turns, 1.7 * CHUNK * HOUR, "acme")
    agree(store, turns, None, "globex")
    assert sums(store) == 2


@pytest.mark.req("K-11")
@pytest.mark.parametrize("database", DATABASES)
def test_a_turn_that_changes_or_goes_is_summed_up_anew(
    database: str, store: TurnStore, turns: list[TurnRecord]
) -> None:
    if database == "postgresql":
        with closing(open_store(new_place(database))) as own:
            assert all(table.is_same for table in copy_store(store, own))
            check_changes(own, turns)
    else:
        check_changes(store, turns)


def check_changes(store: TurnStore, turns: list[TurnRecord]) -> None:
    agree(store, turns, None, None)
    turns[CHUNK + 5] = turns[CHUNK + 5].model_copy(update={"seconds": 77.0, "cap_behavior": "over"})
    changed = "UPDATE turns SET seconds = 77.0, cap_behavior = 'over' WHERE id = :id"
    store._db.execute(changed, {"id": turns[CHUNK + 5].id})
    assert sums(store) == 1, "what came before it stands"
    agree(store, turns, None, None)
    assert sums(store) == 2
    with store.commit() as db:
        db.execute("DELETE FROM turns WHERE id = 't7'")
    agree(store, [turn for turn in turns if turn.id != "t7"], None, None)


async def test_a_turn_that_runs_is_waited_for_and_its_mismatches_count_at_once() -> None:
    store = SqliteStore(":memory:")
    running = a_turn("r", at=0.0)
    mismatches = running.measures.model_copy(update={"mismatches": (1.5,)})
    store.begin_turn(running.model_copy(update={"measures": mismatches}))
    turns = await many(store, CHUNK + 10)
    assert "r" in {one.turn_id for one in store.tally().mismatches}
    assert (metrics(store).number("turns"), sums(store)) == (CHUNK + 10, 0)
    ended = running.model_copy(update={"seconds": 3.0, "status": "ok"})
    store.end_turn(ended, [], [])
    agree(store, [ended, *turns], None, None)
    assert sums(store) == 1


ODD = ("no JSON", "[]", '{"agents": [{"seconds": 1}]}', '{"spent": 7}')


def test_a_turn_that_somebody_else_wrote_breaks_no_sum(store: TurnStore) -> None:
    """One of each kind in the first sum, in the second, and beside both."""
    changed = "UPDATE turns SET measures = :odd WHERE id IN (:first, :second, :last)"
    with store.commit() as db:
        for number, odd in enumerate(ODD):
            ids = {"first": f"t{number}", "second": f"t{CHUNK + number}"}
            db.execute(changed, {"odd": odd, **ids, "last": f"t{2 * CHUNK + number}"})
    count = 2 * CHUNK + 300
    assert count - 3 * len(ODD) <= metrics(store).number("turns") <= count and sums(store) == 2
