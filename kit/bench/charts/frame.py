"""Frames that figures draw: the results of a grid, a row for each scored turn; and estimates, a row for each group."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from kit.bench.grid.results import read_results
from kit.bench.statistics.means import mean
from kit.metrics.estimate import share


def load_frame(folder: Path) -> pd.DataFrame:
    """Ways, case, measures, and each score in a column of its name. Raises DataError for a folder without results."""
    return frame(read_results(folder))


def frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The same of rows that were read already."""
    return pd.DataFrame([{**{name: value for name, value in row.items() if name != "scores"}, **row["scores"]} for row in rows])


def shares(frame: pd.DataFrame, by: list[str], right: str, total: str) -> pd.DataFrame:
    """The share of each group; `right` and `total` are columns of counts. Groups keep their order."""
    groups: Any = frame.groupby(by, sort=False)[[right, total]]
    sums = groups.sum().reset_index()
    estimates = [share(int(r), int(t)) for r, t in zip(sums[right], sums[total], strict=True)]
    return sums[by].join(pd.DataFrame([one.columns() for one in estimates]))


def means(frame: pd.DataFrame, by: list[str], value: str) -> pd.DataFrame:
    """The mean of a column in each group. Groups keep their order."""
    groups: Any = frame.groupby(by, sort=False)[value]
    lists = groups.apply(list).reset_index()
    return lists[by].join(pd.DataFrame([mean(values).columns() for values in lists[value]]))
