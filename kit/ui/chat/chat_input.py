"""The question of this run of the page: typed, picked from the suggestions, or asked once more; with its pictures."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.core.errors import PictureError
from kit.core.picture import LARGEST, MOST, Picture, check_count
from kit.core.value import Value
from kit.ui.shared.wording import literal


class Question(Value):
    """A question, what goes wrong while it is answered, and its pictures."""

    text: str
    faults: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    cap: int | None = None


def read_question(placeholder: str, notice: DeltaGenerator) -> Question | None:
    """Draws the input and returns what is to be asked; a question whose files are refused is put
    back, and `notice` says why."""
    refusals: int = st.session_state.get("refusals", 0)
    key = f"question-{refusals}"  # one input would not take the same words twice
    if refusal := st.session_state.pop("refusal", None):
        st.session_state[key], sentence = refusal
        notice.error(literal(sentence), icon=":material/error:")
    message = st.chat_input(
        placeholder,
        key=key,
        submit_mode="disable",
        accept_file="multiple",
        file_type=["png", "jpg", "jpeg", "webp", "gif"],
        max_upload_size=MOST * LARGEST // 2**20,  # what is a little too large is told so in words
    )
    waiting: Question | None = st.session_state.pop("ask", None)
    if waiting is not None or message is None:
        return waiting
    try:
        pictures = check_count([Picture.of(file.getvalue(), file.name) for file in message.files])
    except PictureError as error:
        st.session_state["refusal"], st.session_state["refusals"] = (
            (message.text, str(error)),
            refusals + 1,
        )
        st.rerun()
    return (
        Question(text=message.text, pictures=pictures) if pictures or message.text.strip() else None
    )


def ask(question: Question) -> None:
    """Has the next run of the page ask this, as if it had been typed."""
    st.session_state["ask"] = question
