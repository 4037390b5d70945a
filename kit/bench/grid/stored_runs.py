"""Lists the folders that hold results of grids, with what each one's provenance says; the results stay unread."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from kit.bench.case import Case, read_cases
from kit.bench.grid.provenance import Plan
from kit.bench.grid.run import CASES, PROVENANCE, RESULTS
from kit.core.errors import DataError
from kit.core.limits import read_json
from kit.core.value import Value


class StoredRun(Value):
    """A folder with the results of a grid."""

    folder: Path
    name: str
    kinds: tuple[str, ...]
    """What its figures are: "simulated", "offline stand-in", "measured"."""
    cells: int
    """Cells of the grid."""
    played: int
    failed: dict[str, int] = {}
    """What lost how many cells."""
    baseline: dict[str, str]
    verdicts: tuple[str, ...]
    plan: Plan = Plan()
    runs: tuple[dict[str, Any], ...] = Field(min_length=1)
    """What each of its runs was made of, oldest first (see provenance.py)."""

    @property
    def complete(self) -> bool:
        return self.played == self.cells

    def __str__(self) -> str:
        text = " and ".join(self.kinds)
        if not self.complete:
            text += f", {self.played:,} of {self.cells:,} cells"
        if self.failed:
            text += f", {self.lost:,} failed"
        return text

    @property
    def lost(self) -> int:
        """Cells that failed."""
        return sum(self.failed.values())


def list_runs(roots: Iterable[Path]) -> tuple[dict[str, StoredRun], list[str]]:
    """Key -> run, and a sentence for each folder whose provenance cannot be read.

    Roots in their order, the newest results first. The key is the folder's path below its root; of
    two alike the first counts.
    """
    runs: dict[str, StoredRun] = {}
    broken: list[str] = []
    for root in roots:
        # Of a root that is no folder rglob finds nothing.
        for path in sorted(root.rglob(RESULTS), key=_age):
            key = path.parent.relative_to(root).as_posix()
            try:
                runs.setdefault(key, read_run(path.parent))
            except DataError as error:
                broken.append(str(error))
    return runs, broken


def _age(path: Path) -> tuple[int, str]:
    """To the minute, then by name: what one checkout brought is equally old."""
    # A checkout writes its files within seconds, in no order that says anything.
    return -int(path.stat().st_mtime // 60), str(path)


def read_run(folder: Path) -> StoredRun:
    """What a folder says of itself. Raises DataError for one that no grid wrote."""
    path = folder / PROVENANCE
    if not (path.exists() or (folder / RESULTS).exists()):
        state = f"no grid wrote its results to {folder}"
        if not folder.is_dir():
            state = f"no folder is called {folder}"
        raise DataError(f"{state}: name the folder of a run, such as .kit/grids/NAME")
    try:
        provenance: Mapping[str, Any] = read_json(path.read_text(encoding="utf-8"))
        runs: dict[str, dict[str, Any]] = provenance["runs"]
        in_order = [runs[number] for number in sorted(runs, key=int)]
        fields = {**provenance["grid"], "folder": folder, "runs": in_order}
        return StoredRun.model_validate(fields)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: no provenance of a grid; run the grid again, it writes the file anew"
        ) from error


def read_asked(folder: Path) -> dict[str, Case]:
    """Id -> the case that was played; empty for a run of an earlier version, which did not keep what was asked."""
    path = folder / CASES
    if not path.exists():
        return {}
    return {case.id: case for case in read_cases(path)}
