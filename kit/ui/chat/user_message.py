"""What a person said, with the pictures that came with it."""

from collections.abc import Sequence

import streamlit as st

from kit.core.picture import Picture
from kit.ui.shared.wording import literal


def draw_user_message(text: str, pictures: Sequence[Picture]) -> None:
    """Draws the message as it was typed, in the next place of the page."""
    with st.chat_message("user", avatar=":material/person:"):
        st.markdown(literal(text))
        if pictures:
            # The first screen does not wait for it.
            from kit.ui.shared.template import render

            # A picture that the browser cannot read shows its name.
            st.html(render("pictures", pictures=pictures))
