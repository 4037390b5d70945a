"""The question of this run of the page: typed, picked from the suggestions, or asked once more; with its pictures."""

import streamlit as st

from kit.core.picture import LARGEST, Picture
from kit.core.value import Value


class Question(Value):
    """A question, what goes wrong while it is answered, and its pictures."""

    text: str
    faults: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    files: tuple[tuple[str, bytes], ...] = ()
    """Name and bytes of files nobody has looked into yet."""

    def with_pictures(self) -> "Question":
        """Returns the question with its files as pictures. Raises PictureError for a file that is none, or too large."""
        pictures = tuple(Picture.of(data, name) for name, data in self.files)
        return self.model_copy(update={"pictures": (*self.pictures, *pictures), "files": ()})


def read_question(placeholder: str) -> Question | None:
    """Draws the input of the chat and returns what this run of the page is to ask, None when it is nothing."""
    message = st.chat_input(
        placeholder,
        submit_mode="disable",
        accept_file="multiple",
        file_type=["png", "jpg", "jpeg", "webp", "gif"],
        max_upload_size=4 * LARGEST // 2**20,  # what is a little too large is told so in words
    )
    waiting: Question | None = st.session_state.pop("ask", None)
    if waiting is not None or message is None:
        return waiting
    files = tuple((file.name, file.getvalue()) for file in message.files)
    return Question(text=message.text, files=files) if files or message.text.strip() else None


def ask(question: Question) -> None:
    """Has the next run of the page ask this, as if it had been typed."""
    st.session_state["ask"] = question
