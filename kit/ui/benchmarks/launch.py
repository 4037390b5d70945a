"""Starts a grid from the page, and shows how far the running one is."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import streamlit as st

from kit.bench.grid.stored_runs import StoredRun
from kit.core.display.command import command
from kit.core.display.count import many
from kit.core.errors import DataError
from kit.ui.benchmarks.grid_runner import Grids, Job
from kit.ui.benchmarks.order import MOST_CELLS, Order, about, grid_files, order
from kit.ui.shared.frame import report_errors
from kit.ui.shared.host import Host
from kit.ui.shared.wording import literal


@st.cache_resource(show_spinner=False, on_release=lambda grids: grids.close())
def open_grids() -> Grids:
    """Returns the process' one player of grids."""
    return Grids()


def draw_progress(see: Callable[[str], None]) -> None:
    """Draws the bar of the running grid with its Stop, or how the last one ended; `see` opens the
    results of a folder."""
    grids = open_grids()
    job = grids.job
    # The newest job stays in memory; once somebody has seen its results its box goes.
    if job is None or st.session_state.get("bench-seen") == id(job):
        return
    if job.over:
        _draw_end(grids, job, see)
    else:
        _running(grids)


@st.fragment(run_every=0.5)
def _running(grids: Grids) -> None:
    job = grids.job
    if job is None or job.over:
        st.rerun()
    with (
        st.container(border=True, key="bench-job"),
        st.container(horizontal=True, vertical_alignment="center"),
    ):
        st.progress(job.done / job.total if job.total else 0.0, f"**{job.name}**: {_far(job)}")
        stopping = job.state == "stopping"
        label = "Stopping" if stopping else "Stop"
        st.button(
            label,
            icon=":material/stop_circle:",
            key="bench-stop",
            disabled=stopping,
            on_click=grids.stop,
        )


def _far(job: Job) -> str:
    if not job.total:
        return "reading the grid"
    return f"{job.done:,} of {job.total:,} cells"


def _draw_end(grids: Grids, job: Job, see: Callable[[str], None]) -> None:
    def show_results() -> None:
        st.session_state["bench-seen"] = id(job)
        see(job.folder.name)

    cells = f"{job.done:,} of {job.total:,} cells are played"
    if job.dollars:
        cells += f", ${job.dollars:,.4f} spent"
    with st.container(border=True, key="bench-job"):
        if job.state == "complete":
            st.success(
                f"**{job.name}** is done: {cells}.".replace("$", r"\$"),
                icon=":material/check_circle:",
            )
        elif job.state == "stopped":
            sentence = f"**{job.name}** was stopped: {cells} and kept. {job.message or 'It goes on from there.'}"
            st.warning(sentence.replace("$", r"\$"), icon=":material/stop_circle:")
        else:
            st.error(literal(job.message), icon=":material/error:")
        with st.container(horizontal=True):
            if job.state != "failed":
                st.button(
                    "See its results",
                    icon=":material/insights:",
                    key="bench-see",
                    on_click=show_results,
                )
            if job.state != "complete":
                st.button(
                    "Go on",
                    icon=":material/play_arrow:",
                    key="bench-again",
                    on_click=_again,
                    args=(grids, job),
                )


def _again(grids: Grids, job: Job) -> None:
    # Somebody was quicker: theirs is shown.
    with suppress(DataError):
        grids.start(job.file, job.folder)


def draw_form(host: Host, runs: dict[str, StoredRun]) -> None:
    """Draws the choice of a grid, says what it will ask for, and starts it."""
    st.markdown(
        "Every cell is a real turn over the real cards; it runs in a process of its own, so "
        "nobody's chat waits for it. "
        "It goes on when you leave this page, and a stopped one is resumed by starting it again."
    )
    with report_errors(st.empty()):
        file = _draw_files()
        order = _order(file, file.stat().st_mtime_ns)
        _asks(order, runs)
        grids = open_grids()
        busy = grids.job is not None and not grids.job.over
        if busy:
            st.caption(
                "One grid is played at a time. This one can start when the running one has ended."
            )
        label = f"Play {many(order.asks.cells, 'cell')}"
        if order.name in runs:
            label = "Play what is missing"
        if st.button(
            label, icon=":material/play_arrow:", key="bench-start", disabled=busy or order.too_large
        ):
            grids.start(order.file, host.kit.settings.grids / order.name)
            st.rerun()


@st.cache_data(show_spinner=False, max_entries=32)
def _order(file: Path, stamp: int) -> Order:
    """Reads a grid's file, as it stood at a moment."""
    return order(file)


def _draw_files() -> Path:
    files = grid_files()
    names = list(files)
    # A project's own grid comes first; of the shipped ones the quickest is offered.
    first = 0
    if "patterns_example" in names and not names[0].endswith("/grid.yaml"):
        first = names.index("patterns_example")
    name = st.selectbox("Grid", names, index=first, key="bench-file", width=340)
    st.caption(about(files[name]).replace("`", "").replace("$", r"\$"))
    return files[name]


def _asks(order: Order, runs: dict[str, StoredRun]) -> None:
    asks = order.asks
    time = "time not known before the first cells"
    if asks.seconds is not None:
        time = f"about {_duration(asks.seconds)}"
    kinds = " and ".join(order.kinds)
    money = f"$0: its models are {kinds}, and no figure of theirs speaks for a language model."
    sentence = f"**{many(asks.cells, 'cell')}**, {many(asks.turns, 'turn')}; {time}; {order.announcement or money}"
    earlier_run = runs.get(order.name)
    if earlier_run:
        sentence += f" {earlier_run.played:,} cells of an earlier start are there: "
        sentence += "those that fit are not played again."
    st.markdown(sentence.replace("$", r"\$"))
    if order.too_large:
        st.warning(
            f"That is more than the page starts ({MOST_CELLS:,} cells, fewer where the price is not "
            f"known). Take fewer cases, or play "
            f"it in a terminal: `{command('grid', 'FILE.yaml')}`.",
            icon=":material/straighten:",
        )


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"
