"""A grid: every cell once, the same bytes however it was run, and figures as its law says."""

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kit.bench.charts.frame import load_frame
from kit.bench.grid.cell import cells
from kit.bench.grid.grid_file import GridSpec, read_grid
from kit.bench.grid.ledger import Ledger
from kit.bench.grid.report import compare_run
from kit.bench.grid.results import read_results
from kit.bench.grid.run import LEDGER, PROVENANCE, RESULTS, TIMINGS, TRACES, Run, run_grid
from kit.bench.scoring.run_case import turn_id
from kit.compose.topology import Rubric
from kit.core.context import OPERATOR
from kit.core.trace import trace_of
from kit.home import HOME
from kit.metrics.estimate import wilson
from kit.patterns import PATTERNS
from kit.stores.sqlite import SqliteStore
from kit.wire import open_kit
from tests.forks import FORKS, exit_code
from tests.kits import EMBEDDED

OPENER = partial(open_kit, EMBEDDED)
MIXED = {"file": "data/cases/mixed.jsonl", "every": 40}
ERRING = {
    "latency": {"median": 1.0, "sigma": 0.4},
    "drop": 0.3,
    "under_report": 0.5,
    "stray": 0.1,
    "over_trigger": 0.2,
}


def write(folder: Path, **fields: Any) -> Path:
    """A grid file of one simulated model over a few mixed requests, with these fields changed."""
    grid: dict[str, Any] = {
        "models": ["simulated-test"],
        "specs": {"simulated-test": {"provider": "simulated", "law": ERRING}},
        "settings": {"wide": {"cap": 8}},
        "cases": [MIXED],
        **fields,
    }
    path = folder / "small.yaml"
    path.write_text(json.dumps(grid, indent=1))  # JSON is YAML
    return path


def spec_of(folder: Path, **fields: Any) -> GridSpec:
    return read_grid(write(folder, **fields))


def play(spec: GridSpec, folder: Path, workers: int | None = 1) -> tuple[Run, list[dict[str, Any]]]:
    run = run_grid(spec, folder, OPENER, workers)
    return run, read_results(folder)


def test_cells_of_a_deck_that_changed_where_it_is_at_work_are_other_cells(tmp_path: Path):
    spec = spec_of(tmp_path)
    keys = {cell.key for cell in cells(spec)}
    deck = spec.deck
    danger = deck.dangers["en-US"]
    assert "en-US" in deck.settings.danger and deck.on("play")
    changes: dict[str, dict[str, Any]] = {
        "words of danger": {
            "dangers": {
                **deck.dangers,
                "en-US": danger.model_copy(update={"harmless": ("kill it",)}),
            }
        },
        "settings of a flag that is on": {"flag_settings": {"play": {"lookup": {"limit": 3}}}},
        "the flag of a tool": {"tool_flags": {"search_offers": "wide_search"}},
        "the settings of a tool": {"tool_settings": {"lookup": {"size": 3}}},
        "the surface": {"environment_surface": "batch"},
        "a rubric": {"rubrics": {"rhymes": Rubric(id="rhymes", criteria=("It rhymes.",))}},
    }
    assert not keys & {cell.key for cell in cells(spec_of(tmp_path, scorers=["exact"]))}
    for change, fields in changes.items():
        decks = {names: replace(variant, **fields) for names, variant in spec.decks.items()}
        changed = {cell.key for cell in cells(replace(spec, decks=decks))}
        assert not keys & changed, change


# every cell once, the same bytes


def test_the_bytes_are_the_same_at_any_concurrency_in_any_number_of_processes_and_in_any_number_of_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # Forks of one process that has imported the kit, where a grid starts processes that each import it.
    monkeypatch.setattr("multiprocessing.get_context", lambda _: FORKS)
    fields: dict[str, Any] = {
        "patterns": ["mediated", "swarm"],
        "repeats": 2,
        "cases": [{**MIXED, "every": 100}, {"file": "data/cases/switches.jsonl", "take": 1}],
    }
    alone = spec_of(tmp_path, limits={}, **fields)
    _, rows = play(alone, tmp_path / "one")
    timings = [json.loads(line) for line in (tmp_path / "one" / TIMINGS).read_text().splitlines()]
    assert [line["cell"] for line in timings] == list(dict.fromkeys(row["cell"] for row in rows))
    (made,) = json.loads((tmp_path / "one" / PROVENANCE).read_text())["runs"].values()
    assert (made["clock"], made["seed"], made["kinds"]) == (
        "virtual",
        7,
        {"simulated-test": "simulated"},
    )
    assert made["models"]["simulated-test"]["law"]["drop"] == 0.3
    assert len(made["revision"].rstrip("+")) == 40 and "path" not in json.dumps(made)
    together = spec_of(tmp_path, limits={"concurrency": 3}, **fields)
    play(together, tmp_path / "processes", workers=2)
    part = spec_of(tmp_path, **{**fields, "patterns": ["swarm"]})
    play(part, tmp_path / "parts")
    whole, _ = play(alone, tmp_path / "parts")
    assert whole.before == len(list(cells(part))) > 0, (
        "what another grid of the folder has played is not played again"
    )
    results = [(tmp_path / name / RESULTS).read_bytes() for name in ("one", "processes", "parts")]
    assert len(set(results)) == 1 and len(results[0]) > 5_000
    order = [(row["pattern"], row["case"], row["repeat"], row["turn"]) for row in rows]
    assert order == sorted(order)


def play_until_killed(path: Path, folder: Path) -> None:
    """Plays a grid in a process that is killed once 32 cells are kept."""

    def killing(done: int, total: int) -> None:
        if done >= 32:
            os.kill(os.getpid(), signal.SIGKILL)

    run_grid(read_grid(path), folder, OPENER, 1, killing)


def test_a_run_killed_in_the_middle_goes_on_where_it_was(tmp_path: Path):
    path = write(
        tmp_path,
        patterns=["direct"],
        cases=[{**MIXED, "every": 7}],
        sub_agents="stubs",
    )
    assert exit_code(play_until_killed, path, tmp_path / "out") == -signal.SIGKILL
    assert not (tmp_path / "out" / RESULTS).exists()
    spec = read_grid(path)
    keys = [cell.key for cell in cells(spec)]
    ledger = Ledger(tmp_path / "out" / LEDGER)
    kept = ledger.keys()
    ledger.close()
    assert 32 <= len(kept) < len(keys) == 45 and kept < set(keys)
    run, rows = play(spec, tmp_path / "out")
    assert (run.before, run.done) == (len(kept), len(keys) - len(kept)), "none again"
    assert [row["cell"] for row in rows] == keys, "none lost, none twice"
    runs = json.loads((tmp_path / "out" / PROVENANCE).read_text())["runs"]
    assert sorted(runs) == ["1", "2"]


def test_a_grid_stopped_by_ctrl_c_says_what_is_kept_and_goes_on_from_there(
    tmp_path: Path,
):
    path = write(tmp_path, patterns=["monolith", "mediated"], cases=[MIXED])
    command = [sys.executable, "-m", "kit", "grid", str(path), "--workers", "2"]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path / "out")],
        cwd=HOME,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),
    )
    with process:
        while process.poll() is None and not (tmp_path / "out" / LEDGER).exists():
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)  # to every process of it, as a terminal does
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    head, _, tail = err.rpartition("kit: stopped: ")
    assert "Traceback" not in head
    words = re.fullmatch(
        r"(\d+) of 16 cells are played and kept in .*; the same command goes on from there\n", tail
    )
    assert words is not None, err
    run, _ = play(read_grid(path), tmp_path / "out")
    assert run.before == int(words[1]) and run.complete


# what it measures


@pytest.mark.req("PC1-NFR-2", "SAT-12")
def test_a_counted_part_that_a_full_cap_leaves_no_room_for_is_not_called_unseen(tmp_path: Path):
    spec = spec_of(
        tmp_path,
        specs={"simulated-test": {"provider": "simulated", "law": {"drop": 0.5}}},
        settings={"tight": {"cap": 2}, "wide": {"cap": 8}},
        cases=[{"file": "data/cases/mixed.jsonl", "every": 8}],
        sub_agents="stubs",
    )
    _, rows = play(spec, tmp_path / "out")
    tight, wide = (
        Counter(row["failsafe"] for row in rows if row["setting"] == name)
        for name in ("tight", "wide")
    )
    assert tight["no room"] > 0 == tight["unseen"]
    assert wide["no room"] == wide["unseen"] == 0 < wide["caught"]


@pytest.mark.req("PC1-NFR-2", "SAT-12")
def test_the_failsafe_is_taken_apart_at_the_rates_of_the_law(tmp_path: Path):
    law = {"drop": 0.3, "under_report": 0.4, "retry_drop": 0.5, "over_trigger": 0.2}
    spec = spec_of(
        tmp_path,
        specs={"simulated-test": {"provider": "simulated", "law": law}},
        settings={"on": {"cap": 8}, "off": {"cap": 8, "guards": {"failsafe": False}}},
        cases=[{"file": "data/cases/mixed.jsonl", "take": 62}],
        sub_agents="stubs",
        baseline={"setting": "off"},
        verdicts=["exact", "model_calls"],
    )
    _, rows = play(spec, tmp_path / "out")
    on, off = (
        Counter(row["failsafe"] for row in rows if row["setting"] == name) for name in ("on", "off")
    )
    turns = 62

    def rate(share: float) -> Any:
        return pytest.approx(share * turns, abs=4 * math.sqrt(share * (1 - share) * turns))

    assert on["unseen"] == rate(0.3 * 0.4 * 0.8) and on["over-triggered"] == rate(0.7 * 0.2)
    seen = 0.3 * (1 - 0.4 * 0.8)
    assert on["caught"] + on["retry failed"] == rate(seen) and on["caught"] > 0 < on["retry failed"]
    assert set(off) == {"whole", "unseen"} and off["unseen"] == sum(
        on[fate] for fate in ("caught", "retry failed", "unseen")
    )
    _, verdicts = compare_run(spec, tmp_path / "out")
    (verdict,) = [v for v in verdicts if v.scorer == "exact"]
    assert verdict.verdict == "better"
    assert verdict.difference.value == pytest.approx(on["caught"] / turns), (
        "on the same draws the failsafe wins what it catches, and nothing else"
    )


@pytest.mark.req("SAT-12", "PC1-NFR-1")
def test_every_turn_has_its_times_tokens_and_cost_and_a_price_makes_dollars(tmp_path: Path):
    model = {
        "provider": "simulated",
        "law": {"latency": {"median": 1.0}, "tokens": {"median": 50}},
        "price_in": 1.0,
        "price_out": 10.0,
    }
    spec = spec_of(
        tmp_path,
        specs={"simulated-test": model},
        patterns=sorted(PATTERNS),
        cases=[{**MIXED, "take": 2}],
    )
    _, rows = play(spec, tmp_path / "out")
    by = {
        pattern: [row for row in rows if row["pattern"] == pattern]
        for pattern in spec.grid.patterns
    }
    for row in rows:
        assert row["cost"] == pytest.approx((row["input_tokens"] + 10 * row["output_tokens"]) / 1e6)
        assert row["output_tokens"] == 50 * row["model_calls"]
    for pattern, seconds, why in (
        ("mediated", 4.2, "the preamble waits; two calls of each agent, its tool, compose"),
        ("monolith", 2.2, "the ledger owes nothing: no turn is composed again"),
    ):
        for row in by[pattern]:
            assert row["ttft"] == pytest.approx(1.0) and row["seconds"] == pytest.approx(seconds), (
                why
            )
    assert all(3.2 < row["seconds"] < 3.4 for row in by["direct"]), "pauses between parts"
    tokens = {pattern: sum(row["input_tokens"] for row in mine) for pattern, mine in by.items()}
    assert tokens["direct"] < tokens["mediated"], "nobody reads the answers again"


@pytest.mark.req("SO-18")
def test_prompt_tokens_are_those_that_one_large_agent_or_narrow_ones_read(
    tmp_path: Path,
):
    law = {"provider": "simulated", "law": {"latency": {"median": 1.0}}}
    take = [{"file": "data/cases/mixed.jsonl", "take": 1}]
    spec = spec_of(
        tmp_path, specs={"simulated-test": law}, patterns=["mediated", "monolith"], cases=take
    )
    run_grid(spec, tmp_path / "out", OPENER, 1, traces=True)
    store = SqliteStore(tmp_path / "out" / TRACES)
    first: dict[str, dict[str, int]] = {}
    for row in read_results(tmp_path / "out"):
        events = store.events(turn_id(row["cell"], 0), OPERATOR)
        calls = [span for span in trace_of(events).spans if span.kind == "model"]
        assert row["input_tokens"] == sum(call.usage.input_tokens for call in calls)
        first[row["pattern"]] = {call.agent: call.usage.input_tokens for call in reversed(calls)}
    store.close()
    (large,) = first["monolith"].values()
    narrow = [read for agent, read in first["mediated"].items() if agent != "orchestrator"]
    assert len(narrow) == 2 and large > 4 * max(narrow)


@pytest.mark.req("PC2-NFR-7")
def test_fan_out_beyond_two_agents_is_measured_by_its_size_and_falls_as_the_law_says(
    tmp_path: Path,
):
    law = {"latency": {"median": 1.0}, "drop": 0.2, "refusal": 0.1}
    spec = spec_of(
        tmp_path,
        specs={"simulated-test": {"provider": "simulated", "law": law}},
        settings={"bare": {"cap": 8, "guards": {"failsafe": False}}},
        cases=[{"file": "data/cases/mixed.jsonl", "every": 3}],
    )
    _, rows = play(spec, tmp_path / "out")
    table = load_frame(tmp_path / "out")
    sizes = table.groupby("parts")["exact"].agg(["sum", "size"])
    assert list(sizes.index) == [2, 3, 4, 5]
    for right, of in zip(map(int, sizes["sum"]), map(int, sizes["size"]), strict=True):
        assert right == pytest.approx(0.8 * of, abs=4 * math.sqrt(0.8 * 0.2 * of)), (
            "one turn in five loses a call"
        )
    assert wilson(sum(map(int, sizes["sum"])), len(rows)).high < 0.95
    for size in (2, 3, 4):
        whole, share = [not row["failed"] for row in rows if len(row["called"]) == size], 0.9**size
        spread = math.sqrt(share * (1 - share) * len(whole))
        assert sum(whole) == pytest.approx(share * len(whole), abs=4 * spread), (
            "each agent declines one request in ten"
        )
        assert wilson(sum(whole), len(whole)).excludes(0.97)


def test_cells_in_which_a_deck_s_own_tools_were_played_are_other_cells_once_those_are_edited(
    tmp_path: Path,
):
    project = tmp_path / "project"
    shutil.copytree(HOME / "template", project)
    tools = project / "deck" / "tools.py"
    fields: dict[str, Any] = {"deck": "deck", "cases": [{"file": "cases.jsonl"}]}

    def keys(sub_agents: str) -> set[str]:
        return {cell.key for cell in cells(spec_of(project, sub_agents=sub_agents, **fields))}

    played = keys("world")
    without_tools = keys("stubs")
    tools.write_text(tools.read_text().replace("2027", "2028"))
    assert played and not played & keys("world")
    assert keys("stubs") == without_tools, "where no tool is called, none has a part in the outcome"


def test_prompts_and_the_world_behind_the_tools_change_what_is_read(tmp_path: Path):
    cases = [{"file": "data/cases/mixed.jsonl", "take": 2}]
    short = {"deck": {}, "short": {"instructions-routing": "Call the tools that fit."}}
    _, rows = play(
        spec_of(
            tmp_path, cases=cases, prompts=short, scorers=["facts", "exact"], sub_agents="world"
        ),
        tmp_path / "out",
    )
    first = {row["prompt"]: row["input_tokens"] for row in rows}
    assert first["short"] < first["deck"]
    assert rows[0]["scores"]["facts"] == 1.0, "the figure comes from the world"
