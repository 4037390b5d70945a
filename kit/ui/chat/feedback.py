"""A person's thumb on an answer, and a word about it: kept in the store, so that it outlives the page."""

from functools import partial

import streamlit as st

from kit.core.errors import KitError
from kit.core.record import Feedback
from kit.ui.shared.host import Host
from kit.ui.shared.wording import literal


def thumbs(host: Host, turn_id: str) -> Feedback | None:
    """Draws the thumbs of a stored turn, and returns the feedback it has."""
    feedback = host.kit.store.feedback(turn_id)
    key = f"thumb-{turn_id}"
    st.feedback(
        "thumbs",
        key=key,
        default=feedback.score if feedback else None,
        on_change=partial(_rate, host, turn_id, key),
    )
    return feedback


def remark(host: Host, feedback: Feedback) -> None:
    """Draws the input for a word about an answer that has a thumb."""
    key = f"note-{feedback.turn_id}"
    if feedback.score:
        question = "What was good about it?"
    else:
        question = "What was wrong?"
    st.text_input(
        "A word about this answer",
        feedback.note,
        max_chars=500,
        key=key,
        placeholder=f"{question} (optional, Enter keeps it)",
        label_visibility="collapsed",
        on_change=partial(_remark, host, feedback, key),
    )


def _rate(host: Host, turn_id: str, key: str) -> None:
    feedback = host.kit.store.feedback(turn_id)
    score = st.session_state[key]
    # A thumb can be turned, not taken back.
    if score is None:
        st.session_state[key] = feedback.score if feedback else None
    else:
        _keep(host, Feedback(turn_id=turn_id, score=score, note=feedback.note if feedback else ""))


def _remark(host: Host, feedback: Feedback, key: str) -> None:
    if _keep(host, feedback.model_copy(update={"note": st.session_state[key].strip()})):
        st.toast("Thank you, it is kept with the answer.", icon=":material/check:")


def _keep(host: Host, feedback: Feedback) -> bool:
    try:
        host.kit.store.give_feedback(feedback)
    except KitError as error:
        st.toast(literal(str(error)), icon=":material/error:")
        return False
    return True
