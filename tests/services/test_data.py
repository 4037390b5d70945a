"""The simulated world: reproducible to the byte, consistent across verticals, loud when broken."""

import hashlib
import importlib.util
import json
import shutil
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import pytest

from kit.core.context import Principal
from kit.core.errors import DataError
from kit.worlds.consumer.world import World, load_world, truth

ROOT = Path(__file__).resolve().parents[2]
WORLD = ROOT / "data" / "world"
DEMO = ("acme", "u-001")


@lru_cache(maxsize=1)
def world() -> World:
    return load_world(WORLD)


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_data", ROOT / "data" / "make_data.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_writes_the_committed_world_byte_for_byte(tmp_path: Path):
    script().write(tmp_path)
    written = {path.name: path.read_bytes() for path in sorted(tmp_path.iterdir())}
    committed = {path.name: path.read_bytes() for path in sorted(WORLD.iterdir())}
    assert written.keys() == committed.keys()
    assert [name for name in written if written[name] != committed[name]] == []


def test_the_world_states_its_own_digest_date_and_that_it_is_simulated():
    meta = world().meta
    digest = hashlib.sha256(
        b"".join((WORLD / f"{table}.jsonl").read_bytes() for table in meta.rows)
    )
    assert (meta.sha256, meta.as_of, meta.simulated) == (digest.hexdigest(), "2026-11-01", True)


def test_every_id_resolves():
    w = world()
    receipts = [receipt for written in w.receipts.values() for receipt in written]
    dangling = [
        *(
            o.id
            for o in w.offers.values()
            if o.product_id not in w.products or not w.retailers.keys() >= set(o.retailer_ids)
        ),
        *(p.id for p in w.products.values() if p.category not in w.categories),
        *(
            s.id
            for s in w.stores.values()
            if s.retailer_id not in w.retailers or s.city not in w.meta.cities
        ),
        *(
            r.id
            for r in receipts
            if r.store_id not in w.stores or (r.tenant_id, r.user_id) not in w.users
        ),
        *(
            r.id
            for r in receipts
            for line in r.lines
            if line.product_id and line.product_id not in w.products
        ),
        *(r.id for r in receipts for met in r.matches if met.offer_id not in w.offers),
        *(p.game_id for rows in w.progress.values() for p in rows if p.game_id not in w.games),
        *(r.id for rows in w.redemptions.values() for r in rows if r.reward_id not in w.rewards),
        *(
            o.id
            for o in w.restaurant_offers.values()
            if o.restaurant not in {row.name for row in w.restaurants.values()}
        ),
    ]
    assert dangling == []
    assert len({receipt.id for receipt in receipts}) == len(receipts) == w.meta.rows["receipts"]


def test_the_demo_user_has_something_in_every_vertical():
    w = world()
    assert len(w.receipts[DEMO]) >= 30
    assert {entry.method for entry in w.ledger[DEMO]} == {
        "receipt",
        "game",
        "referral",
        "bonus",
        "redemption",
    }
    assert len(w.progress[DEMO]) >= 3 and len(w.redemptions[DEMO]) >= 3
    assert len(truth(w, Principal(tenant_id="acme", user_id="u-001")).receipt_ids["pending"]) == 1


def test_the_two_people_whom_the_page_offers_first_have_nothing_in_common():
    first, second = (
        truth(world(), Principal(tenant_id="acme", user_id=user)) for user in ("u-001", "u-002")
    )
    assert first.points != second.points
    assert not {*first.receipt_ids["accepted"]} & {*second.receipt_ids["accepted"]}


def test_the_same_user_id_in_two_tenants_is_two_people():
    acme, globex = (
        truth(world(), Principal(tenant_id=tenant, user_id="u-001"), "coffee")
        for tenant in ("acme", "globex")
    )
    assert acme.points != globex.points
    assert acme.offer_ids and globex.offer_ids and not acme.offer_ids & globex.offer_ids


def test_a_missing_file_names_itself_and_the_fix(tmp_path: Path):
    copy = shutil.copytree(WORLD, tmp_path / "world")
    (copy / "offers.jsonl").unlink()
    with pytest.raises(DataError, match=r"offers\.jsonl.*python data/make_data\.py"):
        load_world(copy)


@pytest.mark.parametrize("broken", ["{not json", json.dumps({"id": "rt-02"}), ""])
def test_a_broken_line_names_file_and_line(tmp_path: Path, broken: str):
    copy = shutil.copytree(WORLD, tmp_path / "world")
    lines = (copy / "retailers.jsonl").read_text().splitlines()
    lines[1] = broken
    (copy / "retailers.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"retailers\.jsonl, line 2: .*python data/make_data\.py"):
        load_world(copy)


def test_a_file_cut_short_is_noticed(tmp_path: Path):
    copy = shutil.copytree(WORLD, tmp_path / "world")
    lines = (copy / "ledger.jsonl").read_text().splitlines()
    (copy / "ledger.jsonl").write_text("\n".join(lines[:-5]) + "\n")
    with pytest.raises(DataError, match=r"ledger\.jsonl holds \d+ rows where meta.json says \d+"):
        load_world(copy)
