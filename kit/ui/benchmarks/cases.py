"""From a way of a grid to its cases, the lowest scores first, and from a case to the trace of a turn that played it."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from kit.bench.grid.comparison import LOWER
from kit.bench.grid.results import AXES
from kit.bench.grid.run import TRACES
from kit.bench.scoring.run_case import turn_of
from kit.bench.statistics.measures import MEASURES
from kit.core.context import OPERATOR
from kit.core.display.command import command
from kit.core.display.count import many
from kit.stores.sqlite import SqliteStore
from kit.ui.benchmarks.verdict import way_name, words
from kit.ui.shared import address
from kit.ui.shared.turn_facts import headline_badge
from kit.ui.shared.turn_fold import stored_view
from kit.ui.shared.wording import label, literal, prose

Row = Mapping[str, Any]


def draw_cases(folder: Path, rows: Sequence[Row], axes: Sequence[str], measure: str) -> None:
    """Draws the scored turns of one way of a run, and the trace of the one that the address names.

    `axes` are those on which ways differ; turns are in the order of the `measure`, the worst first.
    """
    ways = {way_name({axis: row[axis] for axis in AXES}, axes or AXES[:1]): row for row in rows}
    with st.expander(
        "Cases of a way, and their traces",
        icon=":material/list_alt:",
        expanded="cell" in st.query_params,
    ):
        name = st.selectbox("Way", list(ways), key=f"bench-way-{folder.name}", width=340)
        own = [row for row in rows if all(row[axis] == ways[name][axis] for axis in AXES)]
        own.sort(
            key=lambda row: (
                _value(row, measure) is None,
                (_value(row, measure) or 0.0) * (-1 if measure in LOWER else 1),
            )
        )
        key = f"bench-cases-{folder.name}-{name}-{measure}"
        st.dataframe(
            _table(own, measure),
            hide_index=True,
            key=key,
            on_select=partial(_open, key, own),
            selection_mode="single-cell",
            alt=f"Scored turns of {name}, the worst first; choose one to see its trace",
        )
        st.caption(
            f"{many(len(own), 'scored turn')}, the worst first. Choose one to see its trace."
        )
        turn = address.read("cell")
        if turn in {turn_of(row) for row in rows}:  # not one of another run
            _trace(folder, turn)


def _value(row: Row, measure: str) -> Any:
    if measure in MEASURES:
        return row.get(measure)
    return row["scores"].get(measure)


def _table(rows: Sequence[Row], measure: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for row in rows:
        found.append(
            {
                "Case": row["case"],
                "Turn": row["turn"] + 1,
                words(measure).capitalize(): _value(row, measure),
                "For": label(row["domain"]),
                "Asked": [
                    label(agent) + (" ✗" if agent in row.get("failed", ()) else "")
                    for agent in row["called"]
                ],
                "Tokens": row["input_tokens"] + row["output_tokens"],
            }
        )
    return found


def _open(key: str, rows: Sequence[Row]) -> None:
    if cells := st.session_state[key].selection.cells:
        row = rows[cells[0][0]]
        st.query_params["cell"] = turn_of(row)


def _trace(folder: Path, turn_id: str) -> None:
    """Draws the timeline and the answer of a turn, where the run kept it."""
    from kit.ui.shared.waterfall import draw_waterfall

    path = folder / TRACES
    turn = None
    events = ()
    if path.exists():
        with closing(SqliteStore(path)) as store:
            turn = store.turn(turn_id, OPERATOR)
            events = tuple(store.events(turn_id, OPERATOR))
    if turn is None:
        st.info(
            f"No trace of this turn is kept. A grid started on this page keeps them, and "
            f"`{command('grid', '--traces')}` does."
        )
        return
    view = stored_view(turn, events)
    st.markdown(f"### {literal(turn.message)}")
    st.markdown(headline_badge(view))
    draw_waterfall(view.trace, f"trace-{turn_id}")
    st.markdown(prose(view.answer or view.lead or view.regret))
