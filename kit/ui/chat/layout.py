"""Where things go on the chat page, laid out before the kit is there; and its first screen."""

from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.ui.chat.chat_input import SUGGESTIONS, Asked, ask, asked


@dataclass(frozen=True)
class Places:
    """Places in the same order on every run: a page that is drawn in place shows nothing twice."""

    header: DeltaGenerator
    phone: DeltaGenerator
    top: DeltaGenerator
    turns: DeltaGenerator
    desk: DeltaGenerator
    stop: DeltaGenerator
    asked: Asked | None
    """What was just asked."""

    @classmethod
    def lay(cls) -> "Places":
        chat, side = st.columns([5, 2], gap="large")
        with chat:
            header = st.container(horizontal=True, vertical_alignment="center", key="header")
            header.markdown("**dispatch-kit**", width="content")
            top = st.empty()
            turns = st.container()
        phone = header.container(key="panel-phone", width="content").popover("This turn", icon=":material/info:", type="tertiary")
        desk = side.container(key="panel-desk")
        with st.bottom:
            stop = st.empty()
        # Not inside st.bottom: only an input that finds its own way down makes the page follow new text.
        return cls(header, phone, top, turns, desk, stop, asked())

    def first_screen(self) -> None:
        """What can be asked, for a conversation that has not begun."""
        with self.top.container(key="first"):
            st.markdown("## What can I look up for you?")
            st.markdown(
                "Ask several things in one message: each part goes to the sub-agent that knows it, all work at the same time, "
                "and you get one answer, also when a part fails."
            )
            st.pills("Try one", list(SUGGESTIONS), key="suggestion", on_change=_suggested, label_visibility="collapsed")
            st.caption("The last two break a part on purpose, so that you see what the answer says then.")


def _suggested() -> None:
    picked = st.session_state.pop("suggestion", None)
    if picked:
        ask(SUGGESTIONS[picked])
