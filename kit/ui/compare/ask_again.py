"""Asks a question again, on another pattern, model, limit or with other failures; or one question
on all patterns at once."""

import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import streamlit as st

from kit.core.context import Principal
from kit.core.errors import PictureError
from kit.core.fault import Fault, kinds_of
from kit.core.picture import strip_marks
from kit.core.record import TurnRecord
from kit.patterns import PATTERNS, patterns_of
from kit.ui.shared.host import Host
from kit.ui.shared.model_choice import usable_models
from kit.ui.shared.turn_facts import fault_words
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
        if (
            not st.form_submit_button(
                f"Ask {ALL[0].lower()}{ALL[1:]}", icon=":material/stacked_bar_chart:"
            )
            or not text.strip()
        ):
            return []
    host.prepare(PATTERNS)
    sessions = {pattern: host.session(uuid.uuid4().hex, principal) for pattern in PATTERNS}
    texts: list[str] = []
    for pattern, session in sessions.items():
        if session is not None:
            texts.append(host.start(text, session, pattern=pattern))
    return texts


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
            cap = _select(
                "At once, at most", [str(cap) for cap in range(1, WIDEST + 1)], str(turn.cap)
            )
            every = {fault_words(fault): fault for fault in (*_faults(host), *faults)}
            failing = st.multiselect(
                "Made to fail",
                list(every),
                [fault_words(fault) for fault in faults],
                placeholder="Nothing",
                width=320,
            )
        with st.container(horizontal=True):
            once = st.form_submit_button("Ask again", icon=":material/replay:", type="primary")
            everywhere = st.form_submit_button(ALL, icon=":material/stacked_bar_chart:")
    if not (once or everywhere):
        return []
    if model == host.kit.team.orchestrator.model.spec.key:
        key = None
    else:
        key = model
    message = strip_marks(turn.message)
    pictures = host.pictures.of(turn.id)
    if message != turn.message and not pictures:
        raise PictureError(
            "the pictures of this question are no longer in memory: ask it in the chat, with its pictures"
        )
    start = partial(host.start, message, cap=int(cap), model=key, images=pictures)
    pasts = {each: host.kit.recall_before(turn) for each in (PATTERNS if everywhere else [pattern])}
    host.prepare(pasts, key)
    texts: list[str] = []
    for each, past in pasts.items():
        texts.append(
            start(past.session, [every[words] for words in failing], pattern=each, past=past)
        )
    return texts


def _select(title: str, options: list[str], default: str, words: Callable[[str], str] = str) -> str:
    if default in options:
        index = options.index(default)
    else:
        index = 0
    return st.selectbox(title, options, index=index, format_func=words, width=190)


def _faults(host: Host) -> Iterable[str]:
    team = host.kit.team
    return (
        str(Fault(where=agent, kind=kind))
        for agent in team.agents
        for kind in kinds_of(agent, team.root)
    )
