"""From a way of a grid to its cases, the lowest scores first, and from a case to the trace of a turn that played it."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from kit.bench.grid.comparison import LOWER
from kit.bench.grid.report import rows_by_way
from kit.bench.grid.results import AXES
from kit.bench.grid.run import TRACES
from kit.bench.scoring.run_case import turn_of
from kit.core.context import OPERATOR
from kit.core.display.command import command
from kit.core.display.count import many
from kit.stores.sqlite import SqliteStore
from kit.ui.canvas.drawing import axis_end, canvas_html
from kit.ui.canvas.lane import lanes_of, now_of
from kit.ui.shared import address
from kit.ui.shared.selection import draw_rows
from kit.ui.shared.turn_facts import headline
from kit.ui.shared.turn_fold import stored_view
from kit.ui.shared.wording import agent_labels, label, literal, prose

Row = Mapping[str, Any]


def draw_cases(folder: Path, rows: Sequence[Row], axes: Sequence[str], measure: str) -> None:
    """Draws the scored turns of one way of a run, and the trace of the one that the address names.

    `axes` are those on which ways differ; turns are in the order of the score `measure`, the worst first.
    """
    ways = rows_by_way(rows, axes or AXES[:1])
    with st.expander(
        "Cases of a way, and their traces",
        icon=":material/list_alt:",
        expanded="cell" in st.query_params,
    ):
        name = st.selectbox("Way", list(ways), key=f"bench-way-{folder.name}", width=340)
        way_rows = sorted(ways[name], key=partial(_rank, measure=measure))
        key = f"bench-cases-{folder.name}-{name}-{measure}"
        alternative = f"Scored turns of {name}, the worst first; choose one to see its trace"
        draw_rows(_table(way_rows, measure), list(map(turn_of, way_rows)), "cell", key, alternative)
        st.caption(
            f"{many(len(way_rows), 'scored turn')}, the worst first. Choose one to see its trace."
        )
        turn = address.read("cell")
        # Not one of another run.
        if turn in {turn_of(row) for row in rows}:
            _trace(folder, turn)


def _rank(row: Row, measure: str) -> tuple[bool, float]:
    """Returns the place of a turn among others: the worst first, those without a value last."""
    value = row["scores"].get(measure)
    if value is None:
        return True, 0.0
    if measure in LOWER:
        return False, -value
    return False, value


def _table(rows: Sequence[Row], measure: str) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = []
    for row in rows:
        tokens = None
        if row["input_tokens"] is not None and row["output_tokens"] is not None:
            tokens = row["input_tokens"] + row["output_tokens"]
        cells = {
            "Case": row["case"],
            "Turn": row["turn"] + 1,
            label(measure): row["scores"].get(measure),
            "For": label(row["domain"]),
            "Asked": agent_labels(row["called"], row.get("failed", ())),
            "Tokens": tokens,
        }
        table.append(cells)
    return table


def _trace(folder: Path, turn_id: str) -> None:
    """Draws the timeline and the answer of a turn, where the run kept it."""
    path = folder / TRACES
    turn = None
    events = ()
    if path.exists():
        with closing(SqliteStore(path)) as store:
            turn = store.turn(turn_id, OPERATOR)
            events = tuple(store.events(turn_id, OPERATOR))
    if turn is None:
        st.info(
            f"No trace of this turn is kept: `{command('grid', 'FILE.yaml', '--traces')}` keeps them."
        )
        return
    view = stored_view(turn, events)
    st.markdown(f"### {literal(turn.message)}")
    st.markdown(headline(view).badge())
    now = now_of(view)
    st.html(canvas_html(lanes_of(view), axis_end(now), "What each did", now=now))
    st.markdown(prose(view.answer or view.lead or view.regret))
