"""What a person said, with the pictures that came with it."""

import base64
from collections.abc import Sequence
from html import escape

import streamlit as st

from kit.core.picture import Picture
from kit.ui.shared.wording import literal


def draw_user_message(text: str, pictures: Sequence[Picture]) -> None:
    """Draws the message as it was typed, in the next place of the page."""
    with st.chat_message("user", avatar=":material/person:"):
        st.markdown(literal(text))
        if pictures:
            st.html(_thumbnails(pictures))


def _thumbnails(pictures: Sequence[Picture]) -> str:
    """Returns pictures as HTML; one that the browser cannot read shows its name."""

    def figure(picture: Picture) -> str:
        data = base64.b64encode(picture.data).decode()
        return (
            f'<li><img src="data:{picture.media_type};base64,{data}" '
            f'alt="{escape(picture.caption or "picture")}"></li>'
        )

    return f'<ul class="pictures">{"".join(map(figure, pictures))}</ul>'
