"""The run of a real model that is kept: it replays to the byte, without the model, and the
documents say what it says."""

from pathlib import Path

from kit.settings import HOME
from tests.cli.test_cli import run

KEPT = HOME / "data" / "results" / "reference" / "real"


def test_the_kept_recording_replays_to_the_kept_results(tmp_path: Path):
    played = run("grid", str(HOME / "data" / "grids" / "real.yaml"), "--out", str(tmp_path))
    assert played.returncode == 0, played.stderr
    for name in ("results.jsonl", "report.md"):
        assert (tmp_path / name).read_bytes() == (KEPT / name).read_bytes(), (
            f"see docs/models.md on how to write {name} again"
        )


def test_what_is_said_of_it_is_what_it_says():
    said = (HOME / "docs" / "models.md").read_text()
    lines = [
        line for line in (KEPT / "report.md").read_text().splitlines() if line.startswith("- ")
    ]
    assert len(lines) == 3 and all(line in said for line in lines)
    assert "one run on one machine" in said
