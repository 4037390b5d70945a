"""Recordings: a turn replays without its models, and a request that changed is told apart."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.chat_models import BaseChatModel

from kit.core.bodies.call import ModelEnded, ModelStarted
from kit.core.card import AgentCard, Policy
from kit.core.errors import CassetteError
from kit.models.scripted import Line, Script, ScriptedModel
from kit.runtime.recording.cassette import Cassette
from kit.runtime.team import bind
from kit.runtime.turn import Reply, run_turn
from tests.kits import ALICE, SmallKit, answering, asks, bodies, failing, small_kit, stitched


async def record(path: Path) -> Reply:
    tape = Cassette(path, "record")
    kit = small_kit(
        [asks("a", "b"), stitched],
        {"a": answering("A", 2.0), "b": answering("B", 1.0)},
        cassette=tape,
    )
    reply = await run_turn("two things", ALICE, kit)
    tape.save()
    return reply


async def test_a_recorded_turn_replays_without_its_models(tmp_path: Path):
    told = await record(tmp_path / "turn.jsonl")
    silent = {"a": ScriptedModel(), "b": ScriptedModel()}
    kit = small_kit(ScriptedModel(), silent, cassette=Cassette(tmp_path / "turn.jsonl", "replay"))
    again = await run_turn("two things", ALICE, kit)
    assert again.text == told.text == "A | B"
    assert again.routing == told.routing and again.usage == told.usage
    assert silent["a"].seen == []
    assert again.events[-1].at == pytest.approx(told.events[-1].at), "it takes the same time"
    assert told.events[-1].at == 2.0


async def test_two_recordings_of_one_turn_are_the_same_file(tmp_path: Path):
    await record(tmp_path / "one.jsonl")
    await record(tmp_path / "two.jsonl")
    one, two = (
        re.sub(r"call_[0-9]+|lc_run[^\"]*", "", (tmp_path / name).read_text())
        for name in ("one.jsonl", "two.jsonl")
    )
    assert one == two and one.count('"place"') == 4


HANGS = Line("too late", delay=600)
BROKEN: dict[str, Line] = {
    "raises": Line(error=ConnectionError("503 from host-x1"), delay=1.0),
    "is cancelled by its library": Line(error=asyncio.CancelledError("pool closed")),
    "hangs": HANGS,
    "hangs after a word": Line("Let me see", pieces=["Let me ", "see"], pace=600),
    "outgrows its budget": Line("on and on " * 200, pieces=["on and on "] * 200),
}


def broken_kit(tape: Cassette, broken: Line, where: str, fallback: bool) -> SmallKit:
    """Two agents; the routing call, agent a or the composing call is broken, with or without a
    fallback; silent in a replay."""
    fine = {
        "lead": asks("a", "b"),
        "a": Line("A is known.", delay=2.0),
        "composes": Line("A is known. B is known."),
    }
    lines = {**fine, where: broken}
    scripts: dict[str, list[Script]] = {
        "orchestrator": [lines["lead"], lines["composes"], fine["composes"]],
        "a": [lines["a"]],
        "b": ["B is known."],
    }
    if fallback and where == "a":
        scripts["a:fallback"] = [fine["a"]]
    elif fallback:
        scripts["orchestrator:fallback"] = (
            [fine["lead"], fine["composes"]] if where == "lead" else [fine["composes"]]
        )
    silent = tape.mode == "replay"
    models: dict[str, BaseChatModel] = {
        name: ScriptedModel(*([] if silent else script)) for name, script in scripts.items()
    }
    second = "offline" if "a:fallback" in scripts else None
    policy = Policy(time_budget_ms=6000, tokens_out=300, model_time_ms=3000 if second else None)
    card = AgentCard(
        id="a", description="Answers a.", model="offline", policy=policy, fallback_model=second
    )
    kit = small_kit(
        models["orchestrator"],
        {a: models[a] for a in "ab"},
        cards=[card],
        cassette=tape,
        model_call_budget_ms=4000,
    )
    kit.team = bind(kit.team.deck, models)
    return kit


def facts(reply: Reply) -> list[Any]:
    """All of a reply but its times and the sizes of the portions its text came in."""
    spans = [
        (s.kind, s.name, s.agent, s.input, s.output, s.error, s.usage, s.attributes)
        for s in reply.trace.spans
    ]
    outcomes = [outcome.model_copy(update={"timing": None}) for outcome in reply.outcomes]
    plain = [
        [a for a in span if not isinstance(a, dict) or "started_at" not in a]
        for span in sorted(map(list, spans), key=str)
    ]
    return [reply.status, reply.text, reply.preamble, reply.routing, reply.usage, outcomes, plain]


@pytest.mark.parametrize("fallback", [True, False])
@pytest.mark.parametrize("where", ["lead", "a", "composes"])
@pytest.mark.parametrize("kind", BROKEN)
async def test_a_turn_in_which_a_model_broke_replays_as_it_was(
    tmp_path: Path, kind: str, where: str, fallback: bool
):
    tape = Cassette(tmp_path / "turn.jsonl", "record")
    first = await run_turn("two things", ALICE, broken_kit(tape, BROKEN[kind], where, fallback))
    tape.save()
    again = await run_turn(
        "two things",
        ALICE,
        broken_kit(Cassette(tape.path, "replay"), BROKEN[kind], where, fallback),
    )
    assert facts(again) == facts(first)
    errors = [body.error for body in bodies(first, ModelEnded) if body.error]
    over = [body for body in bodies(first, ModelStarted) if body.instead_of]
    assert errors or (kind == "outgrows its budget" and where != "a")
    if kind in ("raises", "hangs"):
        assert bool(over) == fallback and (first.text == "A is known. B is known.") == fallback


async def test_equal_requests_from_one_place_answer_in_their_order(tmp_path: Path):
    tape = Cassette(tmp_path / "turns.jsonl", "record")
    for text in ("first", "second"):
        await run_turn(
            "hello", ALICE, small_kit([Line(text)], {"a": ScriptedModel()}, cassette=tape)
        )
    tape.close()
    tape = Cassette(tape.path, "replay")
    kits = (small_kit(ScriptedModel(), {"a": ScriptedModel()}, cassette=tape) for _ in range(3))
    assert [(await run_turn("hello", ALICE, kit)).text for kit in kits] == [
        "first",
        "second",
        "second",
    ]


async def test_a_bearer_token_is_in_no_recording_whoever_says_it(tmp_path: Path):
    said = "the header was bearer abcDEF123.456-xyz=="
    tape = Cassette(tmp_path / "turn.jsonl", "record")
    kit = small_kit(
        [asks("a", "b"), stitched],
        {"a": answering(said), "b": failing(OSError(said))},
        cassette=tape,
    )
    await run_turn(f"what does {said} mean?", ALICE, kit)
    tape.close()
    written = tape.path.read_text()
    assert "abcDEF123" not in written and written.count("[secret]") >= 4


def test_a_missing_or_broken_recording_names_file_and_line(tmp_path: Path):
    with pytest.raises(CassetteError, match="record it first"):
        Cassette(tmp_path / "none.jsonl", "replay")
    head = '{"cassette": 3}\n'
    for bad, line in (
        ("", 1),
        ('{"cassette": 2}\n', 1),
        ('{"place": "orchestrator:1", "request": []}\n', 1),
        (head + "{}\n", 2),
        (head + '{"text": "a1", "is": "x"}\nnot JSON\n', 3),
        (head + '{"place": "orchestrator:1", "request": [["model", {"text": "gone"}]]}\n', 2),
        (head + '{"place": "orchestrator:1", "request": [], "pieces": 7}\n', 2),
    ):
        (tmp_path / "bad.jsonl").write_text(bad)
        for mode in ("replay", "refresh"):
            with pytest.raises(
                CassetteError, match=rf"bad\.jsonl:{line}: [^\n]*record (it|the file) again$"
            ):
                Cassette(tmp_path / "bad.jsonl", mode)
