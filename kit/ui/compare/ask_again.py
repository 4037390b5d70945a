"""Asks a question again, on another pattern, model, limit or with other failures; or one question
on all patterns at once."""

import uuid
from collections.abc import Callable, Iterable, Sequence

import streamlit as st

from kit.core.context import Principal
from kit.core.errors import PictureError
from kit.core.picture import strip_marks
from kit.core.record import TurnRecord
from kit.patterns import PATTERNS, patterns_of
from kit.ui.shared.host import Host
from kit.ui.shared.model_choice import draw_faults, usable_models
from kit.ui.shared.wording import label, model_words

WIDEST = 8
ALL = f"On all {len(PATTERNS)} patterns"


def draw_question(host: Host, principal: Principal) -> list[str]:
    """Draws a question for all patterns; returns the ids of the turns that were just started, none
    when nothing was asked."""
    with st.form("compare-question"):
        text = st.text_input(
            "One question on all patterns", placeholder=host.kit.deck.settings.page.placeholder
        )
        words = f"Ask {ALL[0].lower()}{ALL[1:]}"
        submitted = st.form_submit_button(words, icon=":material/stacked_bar_chart:")
    if not submitted or not text.strip():
        return []
    host.prepare(PATTERNS)
    turn_ids: list[str] = []
    for pattern in PATTERNS:
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
    with st.form("compare-again"):
        st.markdown(f"**Ask {name} again**")
        st.caption(
            "With all that its conversation held before it. The new turn is its own; the conversation stays as it is."
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            pattern = _select("Pattern", list(patterns_of(host.kit.deck)), turn.pattern, label)
            model = _select("Model", usable_models(host.kit), turn.model, model_words)
            caps = list(map(str, range(1, WIDEST + 1)))
            cap = _select("At once, at most", caps, str(turn.cap))
            chosen_faults = draw_faults(host.kit.team, faults)
        with st.container(horizontal=True):
            once = st.form_submit_button("Ask again", icon=":material/replay:", type="primary")
            everywhere = st.form_submit_button(ALL, icon=":material/stacked_bar_chart:")
    if not once and not everywhere:
        return []
    key = model
    if model == host.kit.team.orchestrator.model.spec.key:
        key = None
    message = strip_marks(turn.message)
    pictures = host.pictures.of(turn.id)
    if message != turn.message and not pictures:
        raise PictureError(
            "the pictures of this question are no longer in memory: ask it in the chat, with its pictures"
        )
    patterns: Iterable[str] = [pattern]
    if everywhere:
        patterns = PATTERNS
    host.prepare(patterns, key)
    turn_ids: list[str] = []
    for name in patterns:
        past = host.kit.recall_before(turn)
        turn_id = host.start(
            message,
            past.session,
            chosen_faults or (),
            cap=int(cap),
            pattern=name,
            model=key,
            images=pictures,
            past=past,
        )
        turn_ids.append(turn_id)
    return turn_ids


def _select(title: str, options: list[str], default: str, words: Callable[[str], str] = str) -> str:
    index = 0
    if default in options:
        index = options.index(default)
    return st.selectbox(title, options, index=index, format_func=words, width=190)
