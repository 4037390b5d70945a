import numpy as np
import pandas as pd

from kit.bench.charts import BLUE, RUST, ecdf


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
