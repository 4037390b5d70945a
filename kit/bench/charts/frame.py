"""Frames that figures draw: the results of a grid, a row for each scored turn."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from kit.bench.grid.results import read_results

Frame = pd.DataFrame


def load_frame(folder: Path) -> Frame:
    """Ways, case, measures, and each score in a column of its name. Raises DataError for a folder without results."""
    return frame(read_results(folder))


def frame(rows: Iterable[Mapping[str, Any]]) -> Frame:
    """The same of rows that were read already."""
    flat: list[dict[str, Any]] = []
    for row in rows:
        fields = {**row, **row["scores"]}
        del fields["scores"]
        flat.append(fields)
    return pd.DataFrame(flat)
