"""The run of a real model that is kept: it replays to the byte, without the model, and the
documents say what it says."""

from pathlib import Path

from kit.bench.grid.results import read_results
from kit.settings import HOME
from tests.cli.test_cli import run

KEPT = HOME / "data" / "results" / "reference" / "real"


def test_the_kept_recording_replays_to_the_kept_results(tmp_path: Path) -> None:
    played = run("grid", str(HOME / "data" / "grids" / "real.yaml"), "--out", str(tmp_path))
    assert played.returncode == 0, played.stderr
    for name in ("results.jsonl", "report.md"):
        assert (tmp_path / name).read_bytes() == (KEPT / name).read_bytes(), (
            f"see docs/models.md on how to write {name} again"
        )


def test_it_is_small_and_of_two_models_on_the_same_cases() -> None:
    assert (
        sum(
            path.stat().st_size
            for path in KEPT.rglob("*")
            if path.is_file() and "ledger" not in path.name
        )
        < 1_500_000
    )
    rows = read_results(KEPT)
    kinds = {row["model"]: row["kind"] for row in rows}
    assert kinds == {"offline": "offline stand-in", "smollm2-135m": "measured"}
    cases = [[row["case"] for row in rows if row["model"] == model] for model in kinds]
    assert (
        cases[0] == cases[1]
        and any(row["parts"] > 1 for row in rows)
        and any(row["parts"] == 1 for row in rows)
    )


def test_what_is_said_of_it_is_what_it_says() -> None:
    said = (HOME / "docs" / "models.md").read_text()
    lines = [
        line for line in (KEPT / "report.md").read_text().splitlines() if line.startswith("- ")
    ]
    assert len(lines) == 3 and all(line in said for line in lines)
    assert "one run on one machine" in said
