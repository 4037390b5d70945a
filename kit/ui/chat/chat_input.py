"""The questions of the page: the one to ask now, and those that wait for the end of a turn."""

from typing import NoReturn

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.core.errors import PictureError
from kit.core.picture import LARGEST, MOST_PICTURES, Picture, check_count
from kit.core.value import Value
from kit.ui.shared import address
from kit.ui.shared.wording import literal


class Question(Value):
    """A question, what goes wrong while it is answered, and its pictures."""

    text: str
    faults: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()


def read_question(placeholder: str, notice: DeltaGenerator) -> Question | None:
    """Draws the input and returns what is to be asked; a question whose files are refused is put
    back, and `notice` says why."""
    refusals: int = st.session_state.get("refusals", 0)
    # One input would not take the same words twice.
    key = f"question-{refusals}"
    if refusal := st.session_state.pop("refusal", None):
        st.session_state[key], sentence = refusal
        notice.error(literal(sentence), icon=":material/error:")
    message = st.chat_input(
        placeholder,
        key=key,
        # Streamlit's own "disable" waits for the end of the run that the question began. A look for
        # other tabs' turns that is sent beside the question hides that end, and the field stays dead.
        submit_mode="submit",
        accept_file="multiple",
        file_type=["png", "jpg", "jpeg", "webp", "gif"],
        # What is a little too large is told so in words.
        max_upload_size=MOST_PICTURES * LARGEST // 2**20,
    )
    suggestion: Question | None = st.session_state.pop("ask", None)
    if message is None:
        return suggestion
    try:
        pictures = check_count([Picture.of(file.getvalue(), file.name) for file in message.files])
    except PictureError as error:
        put_back(message.text, str(error))
    if not pictures and not message.text.strip():
        return suggestion
    typed = Question(text=message.text, pictures=pictures)
    if suggestion is None:
        return typed
    waiting().append(typed)
    return suggestion


def put_back(text: str, sentence: str) -> NoReturn:
    """Puts a question that was refused back into the input, in another run of the page, with why."""
    st.session_state["refusal"] = (text, sentence)
    st.session_state["refusals"] = st.session_state.get("refusals", 0) + 1
    st.rerun()


def ask(question: Question) -> None:
    """Has the next run of the page ask this, as if it had been typed."""
    st.session_state["ask"] = question


def waiting() -> list[Question]:
    """Returns the line of questions that wait until the turns before them have ended; the first one is asked next."""
    questions: dict[str, list[Question]] = st.session_state.setdefault("waiting", {})
    return questions.setdefault(address.read("session"), [])
