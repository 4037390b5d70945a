"""A grid that cannot be played or finished: bad input, limits and full disks, each as one sentence."""

import re
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kit.bench.grid.cell import cells
from kit.bench.grid.ledger import FinishedCell, Ledger
from kit.bench.grid.results import read_results
from kit.bench.grid.run import LEDGER, run_grid
from kit.cli import main
from kit.core.errors import DataError
from tests.grids.test_grid import MIXED, OPENER, play, spec_of, write

BAD = [
    (
        {"patterns": ["mediated", "superviser"]},
        r"small.yaml:\d+: unknown pattern 'superviser': did you mean 'supervisor'",
    ),
    (
        {"models": ["simulated-tset"]},
        r"small.yaml:\d+: unknown model 'simulated-tset': did you mean 'simulated-test'",
    ),
    ({"margin": {"exact": 5}}, r"small.yaml:\d+: .*'exact'.* write 0\.05 for 5 points"),
    ({"modles": ["offline"]}, r"small.yaml:\d+: unknown field 'modles': did you mean 'models'"),
    (
        {"faults": {"down": ["reward=down"]}},
        r"small.yaml:\d+: unknown agent 'reward': did you mean 'rewards'",
    ),
    (
        {"prompts": {"x": {"instruction-routing": ""}}},
        r"small.yaml:\d+: unknown block 'instruction-routing': did you mean",
    ),
    (
        {"sub_agents": "stubs", "faults": {"broken": ["shop=error"]}},
        r"small.yaml:\d+: 'shop' is a stub, in which nothing goes wrong",
    ),
    ({"cases": [{"file": "/dev/null"}]}, r"small.yaml:\d+: no case to play"),
    ({"baseline": {"pattern": "direct"}}, r"small.yaml:\d+: unknown pattern 'direct': .*mediated"),
    (
        {"systems": {"echo": {"command": ["cat", "a b"]}}},
        r"small.yaml:\d+: 'systems': write it as echo: command:cat 'a b'",
    ),
    (
        {"verdicts": ["secondz"]},
        r"small.yaml:\d+: unknown scorer or measure 'secondz': did you mean 'seconds'",
    ),
    (
        {"verdicts": ["facts"]},
        r"small.yaml:\d+: this grid does not score by 'facts': name it under `scorers` too",
    ),
    ({"specs": {"simulated-test": {"provider": "simulated"}}}, r"small.yaml:\d+: .*needs a law"),
    (
        {"cases": [{"file": "nowhere.jsonl"}]},
        r"cannot read the cases of .*/test_bad_\S*/nowhere.jsonl",
    ),
    ({"cases": [MIXED, MIXED]}, r"mixed.jsonl: case 'mixed-2-001' is in .* too"),
]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    BAD,
    ids=[next(iter(fields)) + str(n) for n, (fields, _) in enumerate(BAD)],
)
def test_bad_input_is_one_sentence_with_file_and_line_and_the_nearest_name(
    fields: dict[str, Any], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["grid", str(write(tmp_path, **fields)), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("kit: ") and said.count("\n") == 1 and re.search(sentence, said)


def test_a_margin_of_nothing_is_refused_at_the_command_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["grid", str(write(tmp_path)), "--margin", "exat=0.1"]) == 2
    sentence = "margin of 'exat', which is not compared: did you mean 'exact'"
    assert sentence in capsys.readouterr().err


@contextmanager
def full_disk(room: int) -> Generator[None]:
    """No file of this process may grow beyond `room` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_one_sentence_and_finished_cells_are_kept(tmp_path: Path):
    spec = spec_of(
        tmp_path,
        cases=[{"file": "data/cases/mixed.jsonl", "every": 3}],
        sub_agents="stubs",
        patterns=["direct"],
    )
    with (
        full_disk(140_000),
        pytest.raises(
            DataError, match=r"make room on its disk.*; \d+ finished cells are kept"
        ) as caught,
    ):
        run_grid(spec, tmp_path / "out", OPENER, 1)
    assert "\n" not in str(caught.value)
    run, rows = play(spec, tmp_path / "out")
    assert run.before >= 32 and run.complete
    assert [row["cell"] for row in rows] == [cell.key for cell in cells(spec)]
    with (
        full_disk(20_000),
        pytest.raises(DataError, match=r"results cannot be written .* 104 finished cells are kept"),
    ):
        run_grid(spec, tmp_path / "out", OPENER, 1)
    assert len(read_results(tmp_path / "out")) == 104, "the results that were there are whole"


def test_a_ledger_in_use_or_of_another_program_is_one_sentence(tmp_path: Path):
    first = Ledger(tmp_path / LEDGER)
    first.begin("{}")
    with pytest.raises(DataError, match="another run writes to it"):
        Ledger(tmp_path / LEDGER)
    first.keep([FinishedCell("a", "x", "y", None), FinishedCell("a", "z", "y", None)])
    assert first.count == 1 and list(first.lines("lines", ["b", "a"])) == ["x"]
    first.close()
    (tmp_path / "other.db").write_text(
        "no database at all, but long enough to be taken for one " * 20
    )
    with pytest.raises(DataError, match="it is no ledger"):
        Ledger(tmp_path / "other.db")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="choose a folder"):
        Ledger(tmp_path / "file" / LEDGER)
