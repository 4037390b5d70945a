"""The page Benchmarks: the verdict of a grid, its table, figures and origin."""

import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

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
    # A choice is known by its words: no two may be alike.
    draw_list("Run", "run", list(runs), current, lambda name: f"{name} ({runs[name]})")
    with report_errors(st.empty()):
        _draw_run(runs[current])


def _draw_run(run: "StoredRun") -> None:
    if run.failed:
        classes = ", ".join(f"{name} {count:,}" for name, count in run.failed.items())
        st.error(
            f"{run.lost:,} of {run.cells:,} cells failed ({classes}). They are no samples of a "
            f"model, and not scored; start the "
            "run again to play just these.",
            icon=":material/cloud_off:",
        )
    content = _content(str(run.folder), _stamp(run))
    if not content.rows:
        if not run.failed:
            st.info(
                "Nothing of this run was played. Start it again: it goes on where it was.",
                icon=":material/hourglass_empty:",
            )
        return
    # It brings the bench.
    from kit.ui.benchmarks.cases import draw_cases

    _verdict(run, content)
    draw_cases(run.folder, content.rows, content.axes, content.measure)
    st.markdown("### Figures")
    figures = _figures(str(run.folder), _stamp(run))
    is_dark = st.context.theme.type == "dark"
    for figure in figures:
        st.html(render("run_figure", figure=figure, is_dark=is_dark))
    st.markdown("### Cost and time")
    _section("spends", content)
    st.markdown("### Where these figures come from")
    _origin(run)


def _verdict(run: "StoredRun", content: "RunContent") -> None:
    """Draws what the page to hand in says."""
    from kit.bench.run_page.sentences import methods

    _section("kinds", content)
    if run.played + run.lost < run.cells:
        st.warning(
            f"Stopped early: {run.played:,} of {run.cells:,} cells. Only cases that both "
            "ways have met are compared.",
            icon=":material/stop_circle:",
        )
    _section("verdicts", content)
    _section("ways", content)
    st.caption(f"{run.plan} {run.plan.warning}".strip())
    with st.expander("Methods", icon=":material/functions:"):
        paragraph, references = methods(content)
        st.markdown(literal(paragraph, 10_000))
        for reference in references:
            st.markdown(f"- {literal(reference, 10_000)}")


def _section(name: str, content: "RunContent") -> None:
    from kit.bench.run_page.page import section

    st.html(f'<div class="bench">{section(name, content, folds=True)}</div>')


def _origin(run: "StoredRun") -> None:
    for provenance in run.runs:
        st.json(provenance, expanded=1)
    results = run.folder / "results.jsonl"
    with st.container(horizontal=True):
        # A function is called on a click: nobody waits for a file that is not wanted.
        download = partial(st.download_button, icon=":material/download:", on_click="ignore")
        download("results.jsonl", results.read_bytes, f"{run.name}.jsonl", "application/jsonl")
        download("CSV", partial(csv_of, run.folder), f"{run.name}.csv", "text/csv")


def csv_of(folder: Path) -> bytes:
    """Returns a CSV row for each scored turn, as `load_frame` gives them. Raises DataError for a
    folder without results."""
    # It brings pandas and matplotlib: the page does not wait for them.
    from kit.bench.charts import load_frame

    return load_frame(folder).to_csv(index=False).encode()


def _stamp(run: "StoredRun") -> int:
    """Returns a number that changes when the results do."""
    return (run.folder / "results.jsonl").stat().st_mtime_ns


@st.cache_data(show_spinner="Comparing", max_entries=4)
def _content(folder: str, stamp: int) -> "RunContent":
    from kit.bench.run_page.content import read_content

    return read_content(Path(folder))


@st.cache_data(show_spinner="Drawing", max_entries=4)
def _figures(folder: str, stamp: int) -> "list[PageFigure]":
    from kit.bench.charts.run_figures import page_figures

    # Matplotlib has one style for all threads of a process.
    with _DRAWING:
        return page_figures(_content(folder, stamp))
