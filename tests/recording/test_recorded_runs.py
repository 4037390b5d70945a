"""Recordings from end to end: commands and grids against a loopback server, replayed without it,
refreshed where they changed."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.cli.ask import PLAYED
from kit.settings import HOME
from tests.cli.test_cli import Result, refused, run
from tests.loopback_openai import Call, Loopback, Say

pytestmark = pytest.mark.realtime

KEY = "sk-loopback-quokka-secret"
QUESTION = "how many points do I have"
NOWHERE = "http://127.0.0.1:9"
"""An address where nobody answers."""
ASKS = Say(["One moment."], [Call("ask_rewards", {"query": QUESTION, "intent_count": 1}, "c1")])
WORKS = (Say((), [Call("get_user_points", {}, "c2")]), Say(["You have ", "a few points."]))
COMPOSES = Say(["A few points, ", "as it happens."], drip=0.02)


@pytest.fixture
def deck(tmp_path: Path) -> Path:
    """The cards, to be changed."""
    shutil.copytree(HOME / "cards", tmp_path / "cards")
    return tmp_path / "cards" / "consumer"


def ask(file: Path, url: str, *more: str, text: str = QUESTION, **environ: str) -> Result:
    environ = {
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": KEY,
        "KIT_MODEL": "gpt-4.1-mini",
        **environ,
    }
    return run("ask", text, "--cassette", str(file), *more, **environ)


def recorded(file: Path, server: Loopback, **environ: str) -> Result:
    server.plays(ASKS, *WORKS, COMPOSES)
    result = ask(file, server.url, "--record", **environ)
    assert result.returncode == 0 and "as it happens" in result.stdout, result
    return result


def replayed(file: Path, *more: str, **environ: str) -> Result:
    """Without server, key, model or services: all of that stands in the file."""
    return run("ask", QUESTION, "--cassette", str(file), *more, KIT_UPSTREAM_URL=NOWHERE, **environ)


def timeless(story: str) -> str:
    """Without the seconds a turn took: replayed waits are those of the recording, what is computed
    between them is not."""
    return re.sub(r"\d+\.\d s\b", "some s", story)


def takes(file: Path) -> dict[str, dict[str, Any]]:
    return {
        take["place"]: take
        for take in map(json.loads, file.read_text().splitlines())
        if "place" in take
    }


def test_models_tools_and_sub_agents_replay_without_server_key_or_services(
    tmp_path: Path, server: Loopback
):
    file = tmp_path / "turn.jsonl"
    told = recorded(file, server, KIT_TODAY="2026-10-31")
    calls = len(server.requests)
    again = replayed(file)
    story = again.stdout.replace(f", {PLAYED}", "")
    assert PLAYED in again.stdout and timeless(story) == timeless(told.stdout)
    assert again.returncode == 0 and calls == len(server.requests) == 4
    assert json.loads(replayed(file, "--json").stdout.splitlines()[-1])["replayed"] is True
    found = takes(file)
    assert list(found) == [
        "orchestrator/1.1.rewards/get_user_points:1",
        "orchestrator/1.1.rewards:1",
        "orchestrator/1.1.rewards:2",
        "orchestrator:1",
        "orchestrator:2",
    ]
    assert (
        "2026-10-31" in file.read_text()
        and 0.02 <= found["orchestrator:2"]["first"] < found["orchestrator:2"]["seconds"]
    )
    assert found["orchestrator/1.1.rewards/get_user_points:1"]["result"]["components"]


def test_a_changed_message_is_one_diff_with_the_command_that_refreshes_it(
    tmp_path: Path, server: Loopback
):
    file = tmp_path / "turn.jsonl"
    recorded(file, server)
    result = run("ask", "how many points has she", "--cassette", str(file))
    refused(
        result, f"{file}: orchestrator:1 does not ask what was recorded: message 2 (human) changed"
    )
    assert f"  -{QUESTION}\n  +how many points has she\n" in result.stderr
    assert result.stderr.endswith(
        f"python -m kit ask 'how many points has she' --cassette {file} --refresh\n"
    )


def test_a_refresh_calls_what_has_changed_and_drops_what_nobody_asks_any_more(
    tmp_path: Path, server: Loopback, deck: Path
):
    file = tmp_path / "turn.jsonl"
    recorded(file, server)
    before, calls = takes(file), len(server.requests)
    block = deck.parent / "blocks" / "rewards" / "persona-rewards.md"
    block.write_text(block.read_text() + "\nCount twice.\n")
    server.plays(*WORKS)
    result = ask(file, server.url, "--refresh", KIT_DECK=str(deck), KIT_UPSTREAM_URL=NOWHERE)
    assert "as it happens" in result.stdout and len(server.requests) == calls + 2
    after = takes(file)
    assert list(after) == list(before) and "Count twice." in file.read_text()
    changed = [place for place in after if after[place]["seconds"] != before[place]["seconds"]]
    assert changed == ["orchestrator/1.1.rewards:1", "orchestrator/1.1.rewards:2"]
    assert replayed(file, KIT_DECK=str(deck)).returncode == 0 and len(server.requests) == calls + 2


# ── grids ───────────────────────────────────────────────────────────────────────────────────────────


def grid_at(folder: Path, server: Loopback, **fields: Any) -> Path:
    """Two messages, one model, stub sub-agents; the recording is named in the file."""
    lines = [
        {"id": name, "turns": [{"user": text, "expected_sub_agents": ["rewards"]}]}
        for name, text in (("a", QUESTION), ("b", "my balance please"))
    ]
    (folder / "cases.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    spec = {"provider": "openai", "base_url": server.url, "price_in": 1.0, "price_out": 1.0}
    told = {
        "name": "taped",
        "models": ["stub"],
        "specs": {"stub": spec},
        "cases": [{"file": "cases.jsonl"}],
        "sub_agents": "stubs",
        "limits": {"concurrency": 1},
        "cassette": {"file": str(folder / "tape.jsonl")},
    }
    path = folder / "grid.yaml"
    path.write_text(yaml.safe_dump({**told, **fields}))
    return path


def cell(text: str) -> tuple[Say, Say]:
    call = Call("ask_rewards", {"query": text, "intent_count": 1}, "c1")
    return Say(["Looking."], [call]), Say(["Done."])


def test_a_grid_records_replays_and_refreshes_each_cell_on_its_own(
    tmp_path: Path, server: Loopback
):
    plan = grid_at(tmp_path, server)
    server.plays(*cell("points"), *cell("points"))  # whichever of the two cells comes first
    done = run("grid", str(plan), "--out", str(tmp_path / "one"), "--record")
    assert done.returncode == 0 and "2 cells played" in done.stdout, done.stderr
    server.key = "nobody may call"
    again = run("grid", str(plan), "--out", str(tmp_path / "two"))
    assert again.returncode == 0 and len(server.requests) == 4
    results = [(tmp_path / name / "results.jsonl").read_bytes() for name in ("one", "two")]
    assert results[0] == results[1] and b'"measured"' in results[0]

    cases = tmp_path / "cases.jsonl"
    cases.write_text(cases.read_text().replace("my balance", "her balance"))
    misfit = run("grid", str(plan), "--out", str(tmp_path / "two"))
    refused(
        misfit,
        "orchestrator:1, b#0 (stub, deck, deck, mediated, none)",
        "-my balance please",
        "+her balance please",
        f"{plan} --refresh",
    )
    server.key = None
    server.plays(*cell("points"))
    assert "my balance please" in (tmp_path / "tape.jsonl").read_text()
    fresh = run("grid", str(plan), "--out", str(tmp_path / "two"), "--refresh")
    assert fresh.returncode == 0 and len(server.requests) == 6, fresh.stderr
    assert "my balance please" not in (tmp_path / "tape.jsonl").read_text()
