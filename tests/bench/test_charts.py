import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from kit.bench.charts import BLUE, RUST, dots, ecdf


def lanes(figure: Figure) -> list[str]:
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_dots_has_a_row_a_thing_and_whiskers_from_low_to_high():
    rows = [
        {"row": "shop", "line": "before", "y": 0.5, "low": 0.3, "high": 0.7},
        {"row": "play", "line": "before", "y": 1.0, "low": 0.6, "high": 1.0},
        {"row": "play", "line": "after", "y": 0.9, "low": 0.8, "high": 0.95},
    ]
    figure = dots(pd.DataFrame(rows), {"before": RUST, "after": BLUE}, "found", "x")
    assert lanes(figure) == ["shop", "play"]
    segments = [
        collection.get_segments()
        for collection in figure.axes[0].collections
        if isinstance(collection, LineCollection)
    ]
    before, after = ([np.asarray(segment)[:, 0].tolist() for segment in line] for line in segments)
    assert before == [pytest.approx([0.3, 0.7]), pytest.approx([0.6, 1.0])]
    assert after == [pytest.approx([0.8, 0.95])]


def test_ecdf_rises_to_all_turns_in_each_panel_and_names_each_line_once():
    rows = pd.DataFrame(
        {
            "way": ["a"] * 4 + ["b"] * 2,
            "first": [1.0, 2, 3, 4, 5, None],
            "last": [2.0, 4, 6, 8, 9, 10],
        }
    )
    figure = ecdf(
        rows, {"first": "first", "last": "last"}, "way", {"b": BLUE, "a": RUST}, "Title", "seconds"
    )
    left, right = figure.axes
    lines = {
        str(line.get_label()).split()[0]: np.asarray(line.get_xydata()).tolist()
        for line in left.get_lines()
    }
    assert lines["a"] == [[1, 0], [1, 0.25], [2, 0.5], [3, 0.75], [4, 1.0]]
    assert lines["b"] == [[5, 0], [5, 1.0]], "what is missing is left out"
    named = right.get_legend()
    assert (
        named
        and [text.get_text() for text in named.get_texts()] == ["b (n = 2)", "a (n = 4)"]
        and left.get_legend() is None
    )
