"""What a person said, with the pictures that came with it."""

from collections.abc import Sequence

import streamlit as st

from kit.core.picture import Picture
from kit.ui.shared.wording import literal

FOLDED = 600
"""Characters of a message that are shown; the rest of a longer one is a click away."""

WHOLE = 20_000
"""Characters of it that this click shows at most."""


def draw_user_message(text: str, pictures: Sequence[Picture]) -> None:
    """Draws the message as it was typed, in the next place of the page."""
    with st.chat_message("user", avatar=":material/person:"):
        st.markdown(literal(text, FOLDED))
        if len(text) > FOLDED:
            with st.expander(f"The whole message, {len(text):,} characters"):
                st.markdown(literal(text, WHOLE))
        if pictures:
            # The first screen does not wait for it.
            from kit.ui.shared.template import render

            # A picture that the browser cannot read shows its name.
            st.html(render("pictures", pictures=pictures))
