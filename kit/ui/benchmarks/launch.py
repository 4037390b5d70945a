"""Starts a grid from the page, and shows how far the running one is."""

from collections.abc import Callable
from contextlib import suppress

import streamlit as st

from kit.bench.grid.stored_runs import StoredRun
from kit.core.display.command import command
from kit.core.display.count import many
from kit.core.errors import DataError
from kit.patterns import PATTERNS
from kit.settings import HOME
from kit.ui.benchmarks.draft import Draft, case_sets, count_cases
from kit.ui.benchmarks.grid_runner import Grids, Job
from kit.ui.benchmarks.order import MOST_CELLS, Order, about, grid_files, order, text_of
from kit.ui.shared.frame import report_errors
from kit.ui.shared.host import Host
from kit.ui.shared.model_choice import draw_missing, missing_variable
from kit.ui.shared.wording import literal

WAYS = ("A grid file", "My own choice")
CASES = 24
"""How many cases a visitor's own grid has at first."""


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
    words = f"{job.done:,} of {job.total:,} cells"
    seconds = job.seconds_to_go
    if job.state == "running" and seconds is not None:
        words += f", about {max(1, round(seconds)):,} s left"
    return words


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
    st.session_state.setdefault("bench-way", WAYS[0])
    choice = st.segmented_control("What to play", WAYS, key="bench-way", required=True)
    with report_errors(st.empty()):
        text = _file() if choice == WAYS[0] else _draw_own_choice(host)
        if text is None:
            st.info("Choose at least one model and one pattern.", icon=":material/tune:")
            return
        order = _order(text)
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
            folder = host.kit.settings.grids / order.name
            grids.start(order.file(folder), folder)
            st.rerun()


_order = st.cache_data(show_spinner=False, max_entries=32)(order)


def _file() -> str:
    files = grid_files()
    names = list(files)
    # A project's own grid comes first; of the shipped ones the quickest is offered.
    first = 0
    if "patterns_example" in names and not names[0].endswith("/grid.yaml"):
        first = names.index("patterns_example")
    name = st.selectbox("Grid", names, index=first, key="bench-file", width=340)
    st.caption(about(files[name]).replace("`", "").replace("$", r"\$"))
    return text_of(files[name])


def _draw_own_choice(host: Host) -> str | None:
    settings = host.kit.settings
    specs = host.kit.deck.models
    missing = {key: missing_variable(spec, settings) for key, spec in specs.items()}
    usable = [key for key, variable in missing.items() if not variable]
    # Simulated models come first: they cost nothing, and their figures say that they are simulated.
    usable.sort(key=lambda key: not key.startswith("simulated"))
    models = st.multiselect("Models", usable, default=usable[:1], key="bench-models")
    draw_missing(missing)
    patterns = st.multiselect(
        "Patterns", list(PATTERNS), default=["mediated", "supervisor"], key="bench-patterns"
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        sets = case_sets(settings.deck)
        cases = st.selectbox(
            "Cases",
            list(sets),
            key="bench-cases",
            format_func=lambda key: f"{key}: {sets[key]}",
            width=420,
        )
        whole = count_cases(cases)
        take = st.number_input(
            "How many of them", 1, whole, min(CASES, whole), key=f"bench-take-{cases}", width=160
        )
    dollars = None
    if any(specs[key].provider not in ("offline", "simulated") for key in models):
        dollars = st.number_input(
            "Dollars, at most", 0.0, 1000.0, 1.0, 0.5, key="bench-dollars", width=160
        )
    if not models or not patterns:
        return None
    deck = str(settings.deck)
    if settings.deck == HOME / "cards" / "consumer":
        deck = ""
    return Draft(
        models=tuple(models),
        patterns=tuple(patterns),
        cases=cases,
        take=int(take),
        dollars=dollars,
        deck=deck,
    ).text()


def _asks(order: Order, runs: dict[str, StoredRun]) -> None:
    asks = order.asks
    time = "time not known before the first cells"
    if asks.seconds is not None:
        time = f"about {_duration(asks.seconds)}"
    if not order.paid:
        money = f"$0: its models are {' and '.join(order.kinds)}, and no figure of theirs speaks for a language model"
    elif asks.dollars is None:
        money = "dollars not known: models.yaml has no price, so no limit can hold"
    else:
        limit = ", without a limit"
        if order.limit is not None:
            limit = f", and no cell is begun past ${order.limit:,.2f}"
        money = f"about ${asks.dollars:,.2f}{limit}"
    sentence = f"**{many(asks.cells, 'cell')}**, {many(asks.turns, 'turn')}; {time}; {money}."
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
