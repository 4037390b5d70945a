"""The layout of the chat page, drawn before the kit is imported; and its first screen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.compose.page import PageSettings, Suggestion
from kit.core.picture import mark_pictures
from kit.ui.chat.chat_input import Question, ask, read_question, waiting
from kit.ui.chat.user_message import draw_user_message
from kit.ui.shared.frame import draw_link

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Places:
    """Places in the same order on every run: a page that is drawn in place shows nothing twice."""

    header: DeltaGenerator
    phone: DeltaGenerator
    top: DeltaGenerator
    turns: DeltaGenerator
    desk: DeltaGenerator
    stop: DeltaGenerator
    scenario: DeltaGenerator
    """The head of the sidebar."""
    purpose: DeltaGenerator
    """Under the input, where it will say what the page is for."""
    page: PageSettings
    asked: Question | None
    """What was just asked."""
    slots: list[DeltaGenerator] = field(default_factory=list[DeltaGenerator])
    introductions: list[DeltaGenerator] = field(default_factory=list[DeltaGenerator])
    """On the first screen, where it will say who asks and who answers: nobody knows before the kit is open."""

    @classmethod
    def lay_out(cls, page: PageSettings) -> "Places":
        """Lays out the page and reads its input."""
        # A sidebar that came with the kit, seconds later, would push the page aside.
        scenario = st.sidebar.container(horizontal=True, vertical_alignment="center")
        scenario.markdown("#### Scenario", width="stretch")
        chat, side = st.columns([5, 2], gap="large")
        with chat:
            header = st.container(horizontal=True, vertical_alignment="center", key="header")
            top = st.empty()
            turns = st.container(key="turns", gap=None)
            _script('<div class="echo" aria-hidden="true"></div>', "echo.js")
            _script("<i hidden></i>", "spoken.js")
            _script("<i hidden></i>", "field.js")
        phone = header.container(key="panel-phone", width="content").popover(
            "This turn", icon=":material/info:", type="tertiary"
        )
        desk = side.container(key="panel-desk")
        with st.bottom:
            newest = st.empty()
            stop = st.empty()
            # Its style puts it under the input, which may end this run of the page.
            purpose = st.container(key="purpose").empty()
            asked = read_question(page.placeholder, stop)
        st.session_state["asked"] = st.session_state.get("asked", 0) + bool(asked)
        # Another number makes the script begin anew.
        with newest.container():
            _script(
                f'<button class="newest" data-asked="{st.session_state["asked"]}" hidden>Newest</button>',
                "newest.js",
            )
        return cls(header, phone, top, turns, desk, stop, scenario, purpose, page, asked)

    def slot(self, number: int) -> DeltaGenerator:
        """Returns a turn's place: what the last run of the page drew in it stays until it is drawn over."""
        while len(self.slots) <= number:
            self.slots.append(self.turns.container())
        return self.slots[number]

    def draw_question(self) -> Question | None:
        """Draws what was just asked where its turn will be, and returns it; None when nothing was."""
        if self.asked:
            self.draw_in(next_slot() + len(waiting()), self.asked)
        return self.asked

    def draw_waiting(self, questions: Sequence[Question]) -> None:
        """Draws questions that wait, below the turns, each where its turn will be."""
        for number, question in enumerate(questions, next_slot()):
            self.draw_in(number, question)
            self.say_it_waits(number)

    def say_it_waits(self, number: int) -> None:
        """Says under a question that it is asked once the turns before it have ended."""
        self.slot(number).caption("Waits for the answer above.")

    def draw_in(self, number: int, question: Question) -> None:
        """Draws a question in a turn's place."""
        with self.slot(number):
            draw_user_message(mark_pictures(question.text, question.pictures), question.pictures)

    def first_screen(self) -> None:
        """Draws what can be asked, for a conversation that has not begun."""
        suggestions = {suggestion.label: suggestion for suggestion in self.page.suggestions or ()}
        with self.top.container(key="first"):
            st.markdown(f"## {self.page.title}")
            st.markdown(self.page.introduction)
            if suggestions:
                pick = partial(_ask_suggestion, suggestions)
                st.pills(
                    "Try one",
                    list(suggestions),
                    key="suggestion",
                    on_change=pick,
                    label_visibility="collapsed",
                )
            if self.page.suggestions_note:
                st.caption(self.page.suggestions_note)
            with st.container(horizontal=True, vertical_alignment="center"):
                draw_link("demo", "See it in scenes")
                draw_link("compare", "Compare patterns")
            # At the end, so that nothing moves when the words come.
            self.introductions.append(st.empty())

    def introduce(self, words: str) -> None:
        """Says who asks and who answers, where the first screen is shown."""
        for place in self.introductions:
            place.caption(words)


def _script(html: str, name: str) -> None:
    """Draws HTML with a script that acts on it; it acts again when another page or other HTML was drawn in between."""
    st.html(f"{html}<script>{(FOLDER / name).read_text()}</script>", unsafe_allow_javascript=True)


def next_slot() -> int:
    """Returns the number of the place after those of the turns that are shown."""
    return max(st.session_state.get("slots", {}).values(), default=-1) + 1


def _ask_suggestion(suggestions: Mapping[str, Suggestion]) -> None:
    if label := st.session_state.pop("suggestion", None):
        ask(Question(text=suggestions[label].question, faults=suggestions[label].faults))
