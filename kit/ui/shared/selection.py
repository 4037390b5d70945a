"""Lists and tables whose choice goes into the page's address."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st


def draw_list(
    title: str,
    part: str,
    options: Sequence[str],
    current: str,
    words: Callable[[str], str] = str,
    width: int = 340,
) -> None:
    """Draws a list of `options` that shows the `current` one and writes another choice into a part of the address."""
    # A new key for each choice: the list always shows what the address says.
    key = f"{part}-{current}"

    def choose() -> None:
        # Streamlit also calls this for a list that was interrupted by a click.
        if st.session_state[key] != current:
            st.query_params[part] = st.session_state[key]

    index = options.index(current)
    st.selectbox(
        title, options, index=index, format_func=words, key=key, on_change=choose, width=width
    )


def draw_rows(
    rows: Sequence[Mapping[str, Any]],
    ids: Sequence[str],
    part: str,
    key: str,
    alternative: str,
    columns: Mapping[str, Any] | None = None,
) -> None:
    """Draws a table. A click on a row puts its id into a part of the address; `alternative` says in
    words what the table holds and what a click does."""

    def choose() -> None:
        cells = st.session_state[key].selection.cells
        if cells:
            st.query_params[part] = ids[cells[0][0]]

    st.dataframe(
        rows,
        hide_index=True,
        key=key,
        on_select=choose,
        # A whole row can be chosen by its box alone, which nobody looks for: any cell will do.
        selection_mode="single-cell",
        column_config=columns,
        alt=alternative,
    )
