"""The layout of the chat page, drawn before the kit is imported; and its first screen."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.compose.page import PageSettings, Suggestion
from kit.ui.chat.chat_input import Question, ask, read_question


@dataclass(frozen=True)
class Places:
    """Places in the same order on every run: a page that is drawn in place shows nothing twice."""

    header: DeltaGenerator
    phone: DeltaGenerator
    top: DeltaGenerator
    turns: DeltaGenerator
    desk: DeltaGenerator
    stop: DeltaGenerator
    page: PageSettings
    question: Question | None
    """What was just asked."""

    @classmethod
    def lay_out(cls, page: PageSettings) -> "Places":
        """Lays out the page and reads its input."""
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
        return cls(header, phone, top, turns, desk, stop, page, read_question(page.placeholder))

    def first_screen(self) -> None:
        """Draws what can be asked, for a conversation that has not begun."""
        suggestions = {suggestion.label: suggestion for suggestion in self.page.suggestions or ()}
        with self.top.container(key="first"):
            st.markdown(f"## {self.page.title}")
            st.markdown(self.page.introduction)
            if suggestions:
                pick = partial(_ask_suggestion, suggestions)
                st.pills("Try one", list(suggestions), key="suggestion", on_change=pick, label_visibility="collapsed")
            if self.page.suggestions_note:
                st.caption(self.page.suggestions_note)


def _ask_suggestion(suggestions: Mapping[str, Suggestion]) -> None:
    if label := st.session_state.pop("suggestion", None):
        ask(Question(text=suggestions[label].question, faults=suggestions[label].faults))
