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
from matplotlib.text import Annotation

from kit.bench.charts import BLUE, GREY, ORANGE, RUST, dots, ecdf, table
from kit.core.trace import Span, Trace
from studies.charts import KINDS, bands, heat, stack, time_against_n, waterfall
from studies.fan_out_time import MIXED, Run, trace_one


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


def test_waterfall_puts_calls_that_overlap_beside_each_other():
    trace = Trace(
        turn_id="t",
        spans=(
            span("turn", None, "turn", 0, 3),
            span("shop", "turn", "agent", 0, 3),
            span("first", "shop", "tool", 0, 2),
            span("second", "shop", "tool", 1, 3),
            span("third", "shop", "tool", 2, 3),
        ),
    )
    (_, upper, _, height), (_, lower, _, _), (_, again, _, _) = bars(
        waterfall(trace), KINDS["tool"]
    )
    assert upper + height <= lower
    assert again == upper


def test_waterfall_says_why_an_agent_failed():
    failed = span(
        "support", "turn", "agent", 0, 0.5, error="invocation: timeout: no answer within 0.5 s"
    )
    figure = waterfall(Trace(turn_id="t", spans=(span("turn", None, "turn", 0, 1), failed)))
    assert "0.50 s, timeout" in [text.get_text() for text in figure.axes[0].texts]


def test_waterfall_draws_a_turn_that_was_cut_off_or_asked_nobody():
    cut = Trace(
        turn_id="t",
        spans=(span("turn", None, "turn", 0, None), span("shop", "turn", "agent", 0.2, None)),
    )
    assert lanes(waterfall(cut)) == ["orchestrator", "shop"]
    alone = waterfall(Trace(turn_id="t", spans=(span("turn", None, "turn", 0, 1),)))
    assert alone.axes[0].get_title("left") == "Nobody was asked"


def test_time_against_n_draws_exact_lines_and_measured_points_with_their_range():
    exact = [
        Run(way, "exact", n, 0, n * step)
        for way, step in (("one_by_one", 0.2), ("mediated", 0.1))
        for n in (1, 2)
    ]
    real = [
        Run("mediated", "measured", 2, run, seconds)
        for run, seconds in enumerate((0.3, 0.21, 0.22))
    ]
    real += [Run("one_by_one", "measured", 2, 0, 0.41)]
    figure = time_against_n(pd.DataFrame([*exact, *real]))
    by_colour = {
        line.get_color(): np.asarray(line.get_ydata()).tolist()
        for line in figure.axes[0].lines
        if line.get_linestyle() == "-"
    }
    assert by_colour == {GREY: [0.2, 0.4], BLUE: [0.1, 0.2]}
    whiskers = figure.axes[0].collections[-1]
    assert isinstance(whiskers, LineCollection)
    whisker = np.asarray(whiskers.get_segments()[0])
    assert sorted(whisker[:, 1]) == pytest.approx([0.21, 0.3])
    assert (
        figure.axes[0].get_title("left")
        == "2 sub-agents side by side take 0.22 s, one after another 0.41 s"
    )


def test_bands_has_a_panel_a_setting_and_names_each_line_once():
    rows = [
        {"panel": panel, "line": line, "dose": dose, "y": y, "low": y - 0.1, "high": y + 0.1}
        for panel in ("left", "right")
        for line, y in (("a", 0.50), ("b", 0.52))
        for dose in (0.0, 0.5)
    ]
    figure = bands(pd.DataFrame(rows), "dose", {"a": BLUE, "b": RUST}, "found", "x")
    left, right = figure.axes
    assert [axes.get_title("left") for axes in (left, right)] == ["left", "right"]
    drawn = {line.get_color(): np.asarray(line.get_ydata()).tolist() for line in right.lines}
    assert drawn == {BLUE: [0.5, 0.5], RUST: [0.52, 0.52]}
    assert [text.get_text() for text in left.texts] == []
    first, second = right.lines
    assert first.get_marker() != second.get_marker() and first.is_dashed() != second.is_dashed(), (
        "told apart in grey"
    )
    named = {text.get_text(): text.xyann[1] for text in right.texts if isinstance(text, Annotation)}
    assert named["b"] - named["a"] > 0.08, "two names must not cover each other"
    edges = np.concatenate([path.vertices for path in right.collections[0].get_paths()])[:, 1]
    assert (edges.min(), edges.max()) == pytest.approx((0.4, 0.6))


def test_stack_draws_shares_that_add_up_and_says_of_how_many():
    counts = pd.DataFrame({"mended": [1, 0], "told": [3, 2]}, index=["10%", "50%"])
    figure = stack(counts, {"told": BLUE, "mended": ORANGE}, "found", "x", "y")
    assert [(x, y, h) for x, y, _, h in bars(figure, ORANGE)] == [
        (-0.35, 0.75, 0.25),
        (0.65, 1.0, 0.0),
    ]
    assert [text.get_text() for text in figure.axes[0].texts] == ["told", "n = 4", "n = 2"]


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
