"""Stored turns on a labelling sheet, and what their labels say of the evaluation (PC2-S5.9b)."""

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from kit.bench.drift import Drift, measure_drift
from kit.bench.routing_report import NOBODY, RoutedTurn
from kit.bench.scoring.labelling_sheet import Item, items, read_sheet, sample, write_sheet
from kit.core.errors import DataError
from kit.core.record import TurnRecord
from kit.metrics.summary import Label
from kit.stores.sqlite import SqliteStore
from kit.wire import open_kit
from tests.cli.test_cli import refused, run
from tests.kits import EMBEDDED
from tests.sample_turn import a_turn

VERTICALS = {"shop": 600, "rewards": 200, "support": 40, "play": 8}
"""How many turns each is called in: traffic is never even."""


def turn(number: int, *called: str, status: str = "ok") -> TurnRecord:
    fields = {"seconds": 1.0, "status": status, "text": "An answer.", "invoked": called}
    message = f"{called[0] if called else 'hello'} {number}"
    began = a_turn(f"t{number:04}", f"s{number}", at=float(number))
    return began.replace(message=message, **fields)


def traffic() -> list[TurnRecord]:
    turns: list[TurnRecord] = []
    for vertical, count in VERTICALS.items():
        turns += [turn(len(turns) + n, vertical) for n in range(count)]
    turns += [turn(900 + n) for n in range(20)]
    return [*turns, turn(950, "shop", "play"), turn(951, "shop", status="cancelled")]


TURNS = traffic()


@pytest.fixture(scope="module")
def store() -> Iterator[SqliteStore]:
    """A store with these turns, which nobody changes."""
    with closing(SqliteStore(":memory:")) as store:
        for each in TURNS:
            store.end_turn(each, [], [])
        yield store


def labelled(sheet: Sequence[Item], right: dict[str, float]) -> list[Item]:
    """The sheet as a person labels it who knows the truth: this share of a vertical's turns was for it."""
    rng = random.Random(1)
    done: list[Item] = []
    for item in sheet:
        ours = item.called[0] if item.called else NOBODY
        agents = item.called if rng.random() < right.get(ours, 0.95) else ("retailer_context",)
        done.append(item.replace(label=Label(turn_id=item.turn_id, agents=agents)))
    return done


def evaluated() -> list[RoutedTurn]:
    """The evaluation: two hundred cases a vertical, 95 of 100 calls right."""
    return [
        RoutedTurn(
            query="q",
            expected=() if name == NOBODY else (name if n < 190 else "retailer_context",),
            called=() if name == NOBODY else (name,),
        )
        for name in (*VERTICALS, NOBODY)
        for n in range(200)
    ]


def by_name(found: Sequence[Drift]) -> dict[str, Drift]:
    return {one.vertical: one for one in found}


# ── the sample ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("PC2-S5.9b")
def test_a_sample_is_even_over_verticals_however_uneven_the_traffic():
    drawn = sample(TURNS, 30, seed=7)
    count = Counter(name for names in drawn.values() for name in names)
    assert count == {"shop": 30, "rewards": 30, "support": 30, "play": 9, NOBODY: 20}
    assert "t0951" not in drawn and drawn["t0950"] in (("play",), ("play", "shop"))


@pytest.mark.req("PC2-S5.9b")
def test_a_seed_draws_the_same_turns_in_any_order_and_beside_any_other_vertical():
    drawn = sample(TURNS, 30, seed=7)
    assert sample(random.Random(3).sample(TURNS, len(TURNS)), 30, seed=7) == drawn
    assert set(sample(TURNS, 30, seed=8)) != set(drawn)
    fewer = [one for one in TURNS if "rewards" not in one.invoked]
    assert {key for key, names in sample(fewer, 30, seed=7).items() if "shop" in names} == {
        key for key, names in drawn.items() if "shop" in names
    }


# ── the sheet ───────────────────────────────────────────────────────────────────────────────────────


def test_a_broken_sheet_names_file_and_line(store: SqliteStore, tmp_path: Path):
    write_sheet(tmp_path / "s.jsonl", items(store, 1, seed=7))
    good = (tmp_path / "s.jsonl").read_text().splitlines()[0]
    wrong = good.replace('"label":{"turn_id":"t', '"label":{"turn_id":"x')
    for broken, said in (
        ("{}", r"s\.jsonl:2: not a line"),
        (wrong, r"s\.jsonl:2: the label is of turn"),
        (good, "stands here twice"),
    ):
        (tmp_path / "s.jsonl").write_text(f"{good}\n{broken}\n")
        with pytest.raises(DataError, match=said):
            read_sheet(tmp_path / "s.jsonl")


async def test_a_labeller_sees_what_came_before_what_was_shown_and_what_crossed():
    async with open_kit(EMBEDDED) as kit:
        session = kit.session("s")
        for message in ("find coffee deals", "how many points do I have?"):
            await kit.ask(message, session)
        sheet = {item.message: item for item in items(kit.store, 5, seed=7)}
    item = sheet["how many points do I have?"]
    assert (
        item.earlier[0] == "user: find coffee deals"
        and item.before == ("shop",)
        and item.called == ("rewards",)
    )
    assert item.shown and item.shown[0].agent == "shop" and item.answers["rewards"] in item.reply
    assert (
        "Earlier turns named" in item.prior_context["rewards"]
        and sheet["find coffee deals"].earlier == ()
    )


# ── the comparison ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("PC2-S5.9b")
def test_the_vertical_that_got_worse_drifts_and_no_other_does(store: SqliteStore):
    sheet = labelled(items(store, 60, seed=7), {"shop": 0.6, NOBODY: 1.0})
    found = by_name(measure_drift(sheet, evaluated()))
    assert {name for name, one in found.items() if one.significant} == {"shop"}
    shop = found["shop"]
    gain, few = shop.difference, found["play"].difference
    assert shop.evaluated.value == 0.95 and shop.stored.n == 60 and gain is not None
    assert gain.low < 0.6 - 0.95 < gain.high < 0 and "DRIFT" in shop.line()
    assert few is not None and few.high - few.low > gain.high - gain.low


@pytest.mark.req("PC2-S5.9b")
def test_unlabelled_turns_and_verticals_on_one_side_are_told_and_not_counted(store: SqliteStore):
    sheet = items(store, 4, seed=7)
    pairs = zip(sheet, labelled(sheet, {}), strict=True)
    half = [item if n % 2 else done for n, (item, done) in enumerate(pairs)]
    cases = [one for one in evaluated() if one.called != ("play",)]
    found = by_name(measure_drift(half, cases))
    assert found["shop"].open > 0 and "unlabelled" in found["shop"].line()
    assert found["play"].difference is None and not found["play"].significant


# ── the command ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("PC2-S5.9b")
def test_from_stored_turns_to_a_verdict_by_command(tmp_path: Path):
    path = str(tmp_path / "kit.db")
    with closing(SqliteStore(path)) as store:
        for n in range(40):
            # One in eight is for rewards and went to the shop.
            asked = "my points" if n % 4 == 0 else "coffee deals"
            record = turn(n, "rewards" if n % 8 == 4 else "shop")
            store.end_turn(record.replace(message=asked), [], [])
    cases = [{"id": f"c{n}", "user": "q", "expected_sub_agents": ["shop"]} for n in range(60)]
    called = [{"id": f"c{n}", "turn": 0, "called": ["shop"]} for n in range(60)]
    for name, lines in {"cases.jsonl": cases, "pred.jsonl": called}.items():
        (tmp_path / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    sheet = str(tmp_path / "sheet.jsonl")
    made = run("data", "drift", sheet, "--per", "30", KIT_STORE=path)
    assert made.returncode == 0 and "35 turns to be labelled" in made.stdout
    refused(run("data", "drift", sheet, KIT_STORE=path), "may hold labels")
    by_hand: list[Item] = []
    for item in read_sheet(tmp_path / "sheet.jsonl"):
        wanted = "shop" if "coffee" in item.message else "rewards"
        by_hand.append(item.replace(label=Label(turn_id=item.turn_id, agents=(wanted,))))
    write_sheet(tmp_path / "sheet.jsonl", by_hand)
    both = ("--cases", str(tmp_path / "cases.jsonl"), "--predictions", str(tmp_path / "pred.jsonl"))
    told = run("data", "drift", sheet, *both)
    assert told.returncode == 1
    (drifted,) = [line for line in told.stdout.splitlines() if "DRIFT" in line]
    assert drifted.startswith("shop") and "nothing to compare" in told.stdout
    refused(run("data", "drift", sheet, *both[:2]), "needs both")


def test_a_sample_may_be_of_one_tenant(store: SqliteStore):
    assert items(store, 3, seed=7, tenant="globex") == []
    assert len(items(store, 3, seed=7, since=900.0)) == 3 + 1
