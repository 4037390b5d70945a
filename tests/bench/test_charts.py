from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from kit.bench.charts import BLUE, RUST, dots, ecdf, table
from kit.core.trace import Span, Trace
from studies.charts import KINDS, heat, waterfall
from studies.fan_out_time import MIXED, trace_one


def span(
    id: str, parent: str | None, kind: Any, started: float, ended: float | None, **fields: Any
) -> Span:
    status: Any = "running" if ended is None else "error" if fields.get("error") else "ok"
    until = started if ended is None else ended
    return Span(
        id=id,
        parent_id=parent,
        kind=kind,
        name=id,
        agent=id,
        started=started,
        ended=until,
        status=status,
        **fields,
    )


def bars(figure: Figure, colour: str) -> list[tuple[float, float, float, float]]:
    """x, y, width, height of the bars filled with a colour, as drawn."""
    found = [
        bar
        for bar in figure.axes[0].patches
        if isinstance(bar, Rectangle) and to_rgb(bar.get_facecolor()) == to_rgb(colour)
    ]
    return [(bar.get_x(), bar.get_y(), bar.get_width(), bar.get_height()) for bar in found]


def lanes(figure: Figure) -> list[str]:
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


async def test_waterfall_has_a_lane_for_each_agent_as_long_as_it_worked():
    figure = waterfall(await trace_one(MIXED, think=0.1))
    assert lanes(figure) == ["orchestrator", *(name.replace("_", " ") for name in MIXED)]
    drawn = bars(figure, KINDS["agent"])
    assert [width for _, _, width, _ in drawn] == pytest.approx([0.6, *MIXED.values()])
    assert [x for x, _, _, _ in drawn] == pytest.approx([0.0, *[0.1] * 8])
    assert (
        figure.axes[0].get_title("left") == "8 sub-agents in 0.40 s; their times add up to 1.41 s"
    )


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
    assert lines["a"] == [[1, 0.25], [2, 0.5], [3, 0.75], [4, 1.0]] and lines["b"] == [[5, 1.0]], (
        "what is missing is left out"
    )
    named = right.get_legend()
    assert (
        named
        and [text.get_text() for text in named.get_texts()] == ["b (n = 2)", "a (n = 4)"]
        and left.get_legend() is None
    )


@pytest.mark.parametrize(("suffix", "head"), [("pdf", b"%PDF-"), ("svg", b"<?xml")])
def test_a_figure_is_written_as_vectors_for_a_paper(tmp_path: Path, suffix: str, head: bytes):
    row = {"row": "shop", "line": "before", "y": 0.5, "low": 0.3, "high": 0.7}
    figure = dots(pd.DataFrame([row]), {"before": BLUE}, "found", "x")
    figure.savefig(tmp_path / f"figure.{suffix}")
    content = (tmp_path / f"figure.{suffix}").read_bytes()
    assert content.startswith(head) and b"image/png" not in content, "no picture of the figure"


def test_heat_writes_every_count_and_tells_the_diagonal_from_a_leak():
    figure = heat(
        {"leaky": [[2, 1], [0, 3]], "tight": [[2, 0], [0, 3]]}, ["ann", "bob"], "found", "x", "y"
    )
    leaky, tight = figure.axes
    assert [text.get_text() for text in leaky.texts] == ["2", "1", "0", "3"]
    assert [text.get_text() for text in tight.texts] == ["2", "0", "0", "3"]

    def filled(axes: Any, colour: str) -> int:
        return sum(
            to_rgb(patch.get_facecolor()) == to_rgb(colour) and bool(patch.get_alpha())
            for patch in axes.patches
        )

    assert (filled(leaky, RUST), filled(leaky, BLUE)) == (1, 2)
    assert (filled(tight, RUST), filled(tight, BLUE)) == (0, 2)


def test_figures_are_not_left_open_for_pyplot_to_show_again():
    waterfall(Trace(turn_id="t", spans=(span("turn", None, "turn", 0, 1),)))
    assert plt.get_fignums() == []


def test_table_sets_words_to_the_left_and_numbers_to_two_decimals():
    html = table(pd.DataFrame({"seconds": [1.234], "agent": ["shop"]})).to_html(table_uuid="t")
    assert "#T_t .col1 {\n  text-align: left;" in html
    assert "#T_t .col0" not in html
    assert ">1.23<" in html
