"""The simulated world: reproducible to the byte, consistent across verticals, loud when broken."""

import hashlib
import importlib.util
import json
import shutil
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import pytest

from kit.core.errors import DataError
from kit.worlds.consumer.world import World, load_world

ROOT = Path(__file__).resolve().parents[2]
WORLD = ROOT / "data" / "world"


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


def test_a_missing_file_names_itself_and_the_fix(tmp_path: Path):
    copy = shutil.copytree(WORLD, tmp_path / "world")
    (copy / "offers.jsonl").unlink()
    with pytest.raises(DataError, match=r"offers\.jsonl.*python data/make_data\.py"):
        load_world(copy)


def test_a_broken_line_and_a_file_cut_short_name_themselves(tmp_path: Path):
    copy = shutil.copytree(WORLD, tmp_path / "world")
    whole = (copy / "retailers.jsonl").read_text()
    for broken in ("{not json", json.dumps({"id": "rt-02"})):
        lines = whole.splitlines()
        lines[1] = broken
        (copy / "retailers.jsonl").write_text("\n".join(lines) + "\n")
        words = r"retailers\.jsonl, line 2: .*python data/make_data\.py"
        with pytest.raises(DataError, match=words):
            load_world(copy)
    (copy / "retailers.jsonl").write_text(whole)
    lines = (copy / "ledger.jsonl").read_text().splitlines()
    (copy / "ledger.jsonl").write_text("\n".join(lines[:-5]) + "\n")
    with pytest.raises(DataError, match=r"ledger\.jsonl holds \d+ rows where meta.json says \d+"):
        load_world(copy)
