"""What a turn that stands still waits for: a yes or no for each tool that asks first, or that
somebody lets it go on."""

from functools import partial

import streamlit as st

from kit.core.bodies.turn import ApprovalAsked
from kit.core.errors import KitError
from kit.ui.shared.host import Host
from kit.ui.shared.turn_view import TurnView
from kit.ui.shared.visitor import visitor
from kit.ui.shared.wording import literal


def draw_approval(host: Host, view: TurnView) -> None:
    """Draws the buttons of a turn that is paused or was interrupted; nothing for any other."""
    if error := st.session_state.pop(f"approval-error-{view.turn_id}", None):
        st.error(literal(error))
    if view.status == "interrupted":
        go_on = partial(_resume, host, view.turn_id, {})
        st.button(
            "Go on", icon=":material/play_arrow:", key=f"resume-{view.turn_id}", on_click=go_on
        )
    if view.status != "paused":
        return
    questions = view.bodies(ApprovalAsked)
    answers: dict[str, bool] = st.session_state.setdefault(f"answers-{view.turn_id}", {})
    for number, approval in enumerate(questions):
        with st.container(
            horizontal=True, vertical_alignment="center", key=f"approval-{view.turn_id}-{number}"
        ):
            # A single question is the text of its turn already.
            if len(questions) > 1:
                st.markdown(literal(approval.question, len(approval.question)), width="content")
            for word, answer, icon in (("Yes", True, "check"), ("No", False, "close")):
                give = partial(_answer, host, view, approval.key, answer)
                if answers.get(approval.key) is answer:
                    kind = "primary"
                else:
                    kind = "secondary"
                st.button(
                    word,
                    icon=f":material/{icon}:",
                    key=f"{word}-{view.turn_id}-{number}",
                    on_click=give,
                    type=kind,
                )


def _answer(host: Host, view: TurnView, key: str, answer: bool) -> None:
    """Notes an answer; with the last one the turn goes on."""
    answers: dict[str, bool] = st.session_state[f"answers-{view.turn_id}"]
    answers[key] = answer
    if answers.keys() >= {approval.key for approval in view.bodies(ApprovalAsked)}:
        _resume(host, view.turn_id, st.session_state.pop(f"answers-{view.turn_id}"))


def _resume(host: Host, turn_id: str, answers: dict[str, bool]) -> None:
    try:
        host.go_on(turn_id, visitor(host), answers)
    except KitError as error:
        st.session_state[f"approval-error-{turn_id}"] = str(error)
