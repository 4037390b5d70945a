"""Frames that figures draw: the results of a grid, a row for each scored turn."""

from pathlib import Path
from typing import Any

import pandas as pd

from kit.bench.grid.results import Results

Frame = pd.DataFrame


def load_frame(folder: Path) -> Frame:
    """Ways, case, measures, and each score in a column of its name. Raises DataError for a folder without results."""
    flat: list[dict[str, Any]] = []
    for row in Results(folder):
        fields = {**row, **row["scores"]}
        del fields["scores"]
        flat.append(fields)
    return pd.DataFrame(flat)
