"""A list whose choice goes into the page's address."""

from collections.abc import Callable, Sequence

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
    key = f"{part}-{current}"  # a new key for each choice: the list always shows what the address says

    def choose() -> None:
        if (
            st.session_state[key] != current
        ):  # Streamlit also calls this for a list that was interrupted by a click
            st.query_params[part] = st.session_state[key]

    index = options.index(current)
    st.selectbox(
        title, options, index=index, format_func=words, key=key, on_change=choose, width=width
    )
