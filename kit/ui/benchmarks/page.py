"""The page Benchmarks: the verdict of a grid, its table, figures and origin."""

import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.core.display.command import command
from kit.settings import HOME
from kit.ui.shared.frame import report_errors, with_store
from kit.ui.shared.selection import draw_list
from kit.ui.shared.template import render
from kit.ui.shared.wording import literal

if TYPE_CHECKING:
    from kit.bench.charts.run_figures import PageFigure
    from kit.bench.grid.stored_runs import StoredRun
    from kit.bench.run_page.content import RunContent
    from kit.ui.shared.host import Host

LOOK = Path(__file__).with_name("page.css")
USUAL = ("exact", "seconds", "input_tokens")
"""Measures of a run that does not name its own."""
_DRAWING = threading.Lock()


@with_store
def page(host: "Host", _: DeltaGenerator) -> None:
    """Draws the page; the address names the run."""
    st.html(LOOK)
    # Brings the bench: no other page waits for it.
    from kit.bench.grid.stored_runs import list_runs

    runs, broken = list_runs([host.kit.settings.grids, HOME / "data" / "results"])
    st.markdown("## Benchmarks")
    for sentence in broken:
        st.warning(sentence, icon=":material/error:")
    if runs:
        _results(runs)
    else:
        play = command("grid", "FILE.yaml", "--traces")
        st.markdown(
            "Every grid that was played here is compared on this page. There is none yet. "
            f"`{play}` plays one, and keeps its turns to be opened here."
        )


def _results(runs: "dict[str, StoredRun]") -> None:
    current = st.query_params.get("run", "")
    if current not in runs:
        if current:
            st.warning("There is no such run here. Choose one below.", icon=":material/search_off:")
        current = next(iter(runs))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        # A choice is known by its words: no two may be alike.
        draw_list("Run", "run", list(runs), current, lambda name: f"{name} ({runs[name]})")
        choices = st.container(horizontal=True, vertical_alignment="bottom")
    with report_errors(st.empty()):
        _draw_run(runs[current], choices)


def _draw_run(run: "StoredRun", choices: Any) -> None:
    if run.failed:
        classes = ", ".join(f"{name} {count:,}" for name, count in run.failed.items())
        st.error(
            f"{run.lost:,} of {run.cells:,} cells failed ({classes}). They are no samples of a "
            f"model, and not scored; start the "
            "run again to play just these.",
            icon=":material/cloud_off:",
        )
    bases = _bases(str(run.folder), _stamp(run), run.baseline)
    if not bases and not run.failed:
        st.info(
            "Nothing of this run was played. Start it again: it goes on where it was.",
            icon=":material/hourglass_empty:",
        )
    if not bases:
        return
    measures = run.verdicts or USUAL
    from kit.ui.benchmarks.verdict import words

    with choices:
        measure = st.selectbox(
            "By", measures, format_func=words, key=f"bench-by-{run.folder.name}", width=260
        )
        key = f"bench-base-{run.folder.name}"
        number = st.selectbox(
            "Beside",
            range(len(bases)),
            format_func=lambda number: _pairs(bases[number]),
            key=key,
            width=220,
        )
        base = bases[number]
    content = _content(str(run.folder), _stamp(run), tuple(measures), base)
    _verdict(run, content, measure, ", ".join(base.values()))
    from kit.ui.benchmarks.cases import draw_cases

    draw_cases(run.folder, content.rows, content.axes, measure)
    st.markdown("### Figures")
    _draw_figures(run)
    st.markdown("### Where these figures come from")
    _origin(run)


def _draw_figures(run: "StoredRun") -> None:
    """Draws the figures of the run as the page to hand in has them, and what the turns of each way took."""
    from kit.ui.benchmarks.tables import spends_html

    content, figures = _drawn(str(run.folder), _stamp(run))
    is_dark = st.context.theme.type == "dark"
    for figure in figures:
        st.html(render("run_figure", figure=figure, is_dark=is_dark))
    st.html(spends_html(content.spends))
    st.caption(
        f"Calls and tokens are means of a turn, seconds the median. These figures are {' and '.join(run.kinds)}."
    )


def _pairs(base: dict[str, str]) -> str:
    return ", ".join(f"{axis}: {name}" for axis, name in base.items())


def _verdict(run: "StoredRun", content: "RunContent", measure: str, base: str) -> None:
    from kit.bench.run_page.sentences import verdict_sentence
    from kit.ui.benchmarks.tables import verdicts_html
    from kit.ui.benchmarks.verdict import headline, lines, words

    kinds = " and ".join(run.kinds)
    beside = [comparison for comparison in content.comparisons if comparison.scorer == measure]
    ways = [summary for summary in content.summaries if summary.scorer == measure]
    with st.container(border=True, key="verdict"):
        st.markdown(literal(headline(beside, base, kinds, ways, content.lost), 10_000))
    if run.played + run.lost < run.cells:
        st.warning(
            f"Stopped early: {run.played:,} of {run.cells:,} cells. Only cases that both "
            "ways have met are compared.",
            icon=":material/stop_circle:",
        )
    rows = lines(ways, beside, content.lost)
    st.html(verdicts_html(rows, words(measure), kinds, base))
    turns = f"{content.cases:,} cases, {len(content.rows):,} turns"
    st.caption(f"{turns}. Intervals are at 95 %.{_method(len(content.comparisons))}")
    if not content.comparisons:
        return
    st.caption(f"{run.plan} {run.plan.warning}".strip())
    with st.expander("Every verdict as a sentence", icon=":material/list:"):
        sentences: list[str] = []
        for comparison in content.comparisons:
            sentence = f"{words(comparison.scorer)} ({kinds}): {verdict_sentence(comparison)}"
            sentences.append("- " + literal(sentence, 10_000))
        st.markdown("\n".join(sentences))


def _method(comparisons: int) -> str:
    if not comparisons:
        return ""
    return (
        " Differences are paired by case; verdicts and the intervals of differences are "
        "corrected by Holm's method for all "
        f"{comparisons} comparisons of this choice. Cases it takes: to show a difference of that size 8 times in 10."
    )


def _origin(run: "StoredRun") -> None:
    from kit.ui.benchmarks.tables import csv_of

    for provenance in run.runs:
        st.json(provenance, expanded=1)
    results = run.folder / "results.jsonl"
    with st.container(horizontal=True):
        # A function is called on a click: nobody waits for a file that is not wanted.
        download = partial(st.download_button, icon=":material/download:", on_click="ignore")
        download("results.jsonl", results.read_bytes, f"{run.name}.jsonl", "application/jsonl")
        download("CSV", lambda: csv_of(run.folder), f"{run.name}.csv", "text/csv")


def _stamp(run: "StoredRun") -> int:
    """Returns a number that changes when the results do."""
    return (run.folder / "results.jsonl").stat().st_mtime_ns


@st.cache_data(show_spinner="Drawing", max_entries=4)
def _drawn(folder: str, stamp: int) -> "tuple[RunContent, list[PageFigure]]":
    from kit.bench.charts.run_figures import page_figures

    content = _content(folder, stamp)
    # Matplotlib has one style for all threads of a process.
    with _DRAWING:
        return content, page_figures(content)


@st.cache_data(show_spinner=False, max_entries=16)
def _bases(folder: str, stamp: int, grid_base: dict[str, str]) -> list[dict[str, str]]:
    """Returns the possible baselines: the grid's own first, then every name of an axis with several."""
    from kit.bench.grid.report import differing_axes

    rows = _content(folder, stamp).rows
    if not rows:
        return []
    names = {axis: sorted({row[axis] for row in rows}) for axis in differing_axes(rows)}
    bases: list[dict[str, str]] = []
    for axis, name in grid_base.items():
        if name in names.get(axis, ()):
            bases = bases or [{}]
            bases[0][axis] = name
    for axis, values in names.items():
        for name in values:
            if {axis: name} not in bases:
                bases.append({axis: name})
    return bases or [{"model": rows[0]["model"]}]


@st.cache_data(show_spinner="Comparing", max_entries=4)
def _content(
    folder: str,
    stamp: int,
    measures: tuple[str, ...] = (),
    base: dict[str, str] | None = None,
) -> "RunContent":
    from kit.bench.run_page.content import read_content

    return read_content(Path(folder), base, measures)
