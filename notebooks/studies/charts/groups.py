"""Frames of estimates, a row for each group of a frame's rows."""

from typing import Any

import pandas as pd

from kit.metrics.estimate import share
from studies.study_statistics import mean


def shares(frame: pd.DataFrame, by: list[str], right: str, total: str) -> pd.DataFrame:
    """The share of each group, with its n; `right` and `total` are columns of counts. Groups keep their order."""
    groups: Any = frame.groupby(by, sort=False)[[right, total]]
    sums = groups.sum().reset_index()
    estimates = [share(int(r), int(t)) for r, t in zip(sums[right], sums[total], strict=True)]
    return sums[by].join(pd.DataFrame([{**one.columns(), "n": one.n} for one in estimates]))


def means(frame: pd.DataFrame, by: list[str], value: str) -> pd.DataFrame:
    """The mean of a column in each group, with its n. Groups keep their order."""
    groups: Any = frame.groupby(by, sort=False)[value]
    lists = groups.apply(list).reset_index()
    return lists[by].join(
        pd.DataFrame([{**mean(values).columns(), "n": len(values)} for values in lists[value]])
    )
