"""What was just asked: typed, picked from the suggestions, or asked once more; with the pictures that come along."""

from collections.abc import Sequence
from typing import Protocol, cast

import streamlit as st

from kit.core.picture import LARGEST, Picture
from kit.core.value import Value


class File(Protocol):
    """A file that was sent with a question."""

    name: str

    def getvalue(self) -> bytes: ...


class Asked(Value):
    """A question, what goes wrong while it is answered, and its pictures."""

    question: str
    faults: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    files: tuple[tuple[str, bytes], ...] = ()
    """Name and bytes of files nobody has looked into yet."""

    def checked(self) -> "Asked":
        """The same with its files as pictures. Raises PictureError for a file that is none, or too large."""
        found = tuple(Picture.of(data, name) for name, data in self.files)
        return self.model_copy(update={"pictures": (*self.pictures, *found), "files": ()})


MIXED = "My receipt didn't scan, how many points do I have, and find coffee deals"
SUGGESTIONS = {
    ":material/stars: My points": Asked(question="How many points do I have?"),
    ":material/hub: Three things at once": Asked(question=MIXED),
    ":material/timer_off: Three at once, rewards times out": Asked(question=MIXED, faults=("rewards=hang",)),
    ":material/gpp_maybe: Someone else's data": Asked(
        question="How many points do I have, and find coffee deals", faults=("rewards=foreign_principal",)
    ),
}
"""What can be asked with one click."""


def asked() -> Asked | None:
    """Draws the input of the chat; returns what this run of the page was asked."""
    typed = st.chat_input(
        "Ask about points, receipts or offers",
        submit_mode="disable",
        accept_file="multiple",
        file_type=["png", "jpg", "jpeg", "webp", "gif"],
        max_upload_size=4 * LARGEST // 2**20,  # what is a little too large is told so in words
    )
    again: Asked | None = st.session_state.pop("ask", None)
    if again is not None:
        return again
    if typed is None:
        return None
    files = tuple((file.name, file.getvalue()) for file in cast("Sequence[File]", typed.files))
    return Asked(question=typed.text, files=files) if files or typed.text.strip() else None


def ask(what: Asked) -> None:
    """Has the next run of the page ask this, as if it had been typed."""
    st.session_state["ask"] = what
