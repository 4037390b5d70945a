"""Asks a question again, on another pattern, model, limit or with other failures; or one question
on all patterns at once."""

import uuid
from collections.abc import Iterable, Sequence

import streamlit as st

from kit.core.context import Principal
from kit.core.errors import PictureError
from kit.core.picture import strip_marks
from kit.core.record import TurnRecord
from kit.patterns import patterns_of
from kit.ui.shared.host import Host
from kit.ui.shared.model_choice import draw_choice, draw_select

WIDEST = 8
"""The largest number of sub-agents at once that is offered."""


def draw_question(host: Host, principal: Principal) -> list[str]:
    """Draws a question for all patterns; returns the ids of the turns that were just started, none
    when nothing was asked."""
    patterns = patterns_of(host.kit.deck)
    with st.form("compare-question"):
        text = st.text_input(
            "One question on all patterns", placeholder=host.kit.deck.settings.page.placeholder
        )
        submitted = st.form_submit_button(
            f"Ask on all {len(patterns)} patterns", icon=":material/stacked_bar_chart:"
        )
    if not submitted or not text.strip():
        return []
    host.prepare(patterns)
    turn_ids: list[str] = []
    for pattern in patterns:
        session = host.session(uuid.uuid4().hex, principal)
        if session is not None:
            turn_ids.append(host.start(text, session, pattern=pattern))
    return turn_ids


def draw_again(host: Host, turn: TurnRecord, name: str, faults: Sequence[str]) -> list[str]:
    """Draws what may be changed of a turn, called `name` on the page and made to fail by `faults`,
    before it is asked again.

    Returns the ids of the turns that were just started, none when nothing was asked. Raises
    PictureError for a turn whose pictures are gone.
    """
    all_patterns = patterns_of(host.kit.deck)
    with st.form("compare-again"):
        st.markdown(f"**Ask the question of {name} again**")
        st.caption(
            "With all that its conversation held before it. The new turn is its own; the conversation stays as it is."
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            choice = draw_choice(host.kit, turn, faults)
            caps = list(map(str, range(1, WIDEST + 1)))
            cap = draw_select("At once, at most", caps, str(turn.cap))
        with st.container(horizontal=True):
            once = st.form_submit_button("Ask again", icon=":material/replay:", type="primary")
            everywhere = st.form_submit_button(
                f"On all {len(all_patterns)} patterns", icon=":material/stacked_bar_chart:"
            )
    if not once and not everywhere:
        return []
    key = None
    if choice.model != host.kit.team.orchestrator.model.spec.key:
        key = choice.model
    message = strip_marks(turn.message)
    pictures = host.pictures.of(turn.id)
    if message != turn.message and not pictures:
        raise PictureError(
            "the pictures of this question are no longer in memory: ask it in the chat, with its pictures"
        )
    patterns: Iterable[str] = [choice.pattern]
    if everywhere:
        patterns = all_patterns
    host.prepare(patterns, key)
    turn_ids: list[str] = []
    for name in patterns:
        past = host.kit.recall_before(turn)
        turn_id = host.start(
            message,
            past.session,
            choice.faults or (),
            cap=int(cap),
            pattern=name,
            model=key,
            images=pictures,
            past=past,
        )
        turn_ids.append(turn_id)
    return turn_ids
