"""Recordings: a turn replays without its models, and a request that changed is told apart."""

from pathlib import Path

import pytest

from kit.core.errors import CassetteError
from kit.models.scripted import ScriptedModel
from kit.runtime.cassette import Cassette
from kit.runtime.turn import Reply, run_turn
from tests.kits import ALICE, answering, asks, small_kit, stitched


async def record(path: Path) -> Reply:
    tape = Cassette(path, "record")
    kit = small_kit([asks("a", "b"), stitched], {"a": answering("A", 2.0), "b": answering("B", 1.0)}, cassette=tape)
    reply = await run_turn("two things", ALICE, kit)
    tape.save()
    return reply


async def test_a_recorded_turn_replays_without_its_models(tmp_path: Path) -> None:
    told = await record(tmp_path / "turn.jsonl")
    silent = {"a": ScriptedModel(), "b": ScriptedModel()}
    kit = small_kit(ScriptedModel(), silent, cassette=Cassette(tmp_path / "turn.jsonl", "replay"))
    again = await run_turn("two things", ALICE, kit)
    assert again.text == told.text == "A | B"
    assert again.routing == told.routing and again.usage == told.usage
    assert silent["a"].seen == []


async def test_two_recordings_of_one_turn_are_the_same_file(tmp_path: Path) -> None:
    await record(tmp_path / "one.jsonl")
    await record(tmp_path / "two.jsonl")
    keys = [[line.split('"')[3] for line in (tmp_path / name).read_text().splitlines()] for name in ("one.jsonl", "two.jsonl")]
    assert keys[0] == keys[1] and len(keys[0]) == 4


async def test_a_changed_request_fails_and_says_what_was_recorded(tmp_path: Path) -> None:
    await record(tmp_path / "turn.jsonl")
    tape = Cassette(tmp_path / "turn.jsonl", "replay")
    with pytest.raises(CassetteError, match=r"asked now: 'human: other things'; the recording asked there: 'human: two things'"):
        tape.find("orchestrator:1#0000", "human: other things")


def test_a_missing_or_broken_recording_names_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(CassetteError, match="record it first"):
        Cassette(tmp_path / "none.jsonl", "replay")
    (tmp_path / "bad.jsonl").write_text("{}\n")
    with pytest.raises(CassetteError, match=r"bad\.jsonl:1"):
        Cassette(tmp_path / "bad.jsonl", "replay")
