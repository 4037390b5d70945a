"""Intervals of shares and means, against values worked out elsewhere."""

import pandas as pd
import pytest

from kit.metrics.estimate import Estimate
from studies.charts import means, shares
from studies.study_statistics import mean


def ends(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high


def test_a_mean_has_the_interval_of_student():
    assert ends(mean([1.0, 2.0, 3.0])) == pytest.approx((2.0, -0.4826, 4.4826), abs=5e-3)
    assert ends(mean([4.0])) == (4.0, 4.0, 4.0)
    many = mean([0.0, 1.0] * 50)
    assert many.high - many.value == pytest.approx(1.984 * 0.5025 / 10, abs=1e-3)


def test_groups_keep_their_order_and_sum_their_counts():
    frame = pd.DataFrame(
        {"line": ["b", "a", "b"], "right": [1, 0, 2], "total": [2, 4, 2], "x": [1.0, 2.0, 3.0]}
    )
    found = shares(frame, ["line"], "right", "total")
    assert list(found["line"]) == ["b", "a"]
    assert list(found["y"]) == [0.75, 0.0]
    assert list(means(frame, ["line"], "x")["y"]) == [2.0, 2.0]
