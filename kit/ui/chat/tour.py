"""The tour of a deck: its scenes one after another, each asked with a click, with a sentence on what to look at."""

from collections.abc import Sequence
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kit.compose.page import Scene
from kit.ui.chat.chat_input import Question, ask
from kit.ui.shared import address
from kit.ui.shared.wording import literal


def draw_start(scenes: Sequence[Scene]) -> None:
    """Draws the button that asks the first scene; nothing where the deck has no tour."""
    if scenes:
        st.button("Take the tour", icon=":material/tour:", on_click=partial(_go, scenes, 1))


def draw_scene(scenes: Sequence[Scene], slot: DeltaGenerator) -> None:
    """Draws what to look at in the scene of the page's address, and the way to the next; nothing
    where it names none."""
    number = next((n for n in range(1, len(scenes) + 1) if address.read("tour") == str(n)), None)
    if number is None:
        return
    scene = scenes[number - 1]
    with slot.container(key="tour", horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"{number} of {len(scenes)} · **{literal(scene.label)}** {literal(scene.look)}",
            width="stretch",
        )
        if number < len(scenes):
            st.button(
                "Next",
                icon=":material/arrow_forward:",
                key="tour-next",
                on_click=partial(_go, scenes, number + 1),
            )
        st.button("End", type="tertiary", key="tour-end", on_click=partial(address.put, "tour"))


def _go(scenes: Sequence[Scene], number: int) -> None:
    scene = scenes[number - 1]
    address.put("tour", str(number))
    ask(Question(text=scene.question, faults=scene.faults, cap=scene.cap))
