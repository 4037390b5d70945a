"""The page Chat: a question, its sub-agents at work side by side, one answer, and how it came about."""

import streamlit as st

from kit.compose.page import PageSettings
from kit.compose.read import read_outline
from kit.core.errors import SettingsError
from kit.settings import Settings
from kit.ui.chat.layout import Places
from kit.ui.shared import address
from kit.ui.shared.frame import report_errors
from kit.ui.shared.visitor import is_operator


def page() -> None:
    """Draws the page; turns go on in the host whatever becomes of this run."""
    layout = Places.lay_out(_page_settings())
    with report_errors(layout.top):
        question = layout.draw_question()
        fresh = st.session_state.get("fresh") == address.read("session")
        if fresh and not question:
            layout.first_screen()
        # It brings the whole kit: the first screen does not wait for it.
        from kit.ui.chat.conversation import converse

        converse(layout, question, fresh=fresh)


def _page_settings() -> PageSettings:
    try:
        settings = read_outline(Settings.read().deck).page
    # Opening the kit says what is wrong with them.
    except SettingsError:
        return PageSettings()
    if is_operator():
        return settings
    # What shows a deck breaks its parts on purpose, which is not for everybody.
    suggestions = [suggestion for suggestion in settings.suggestions or () if not suggestion.faults]
    return settings.model_copy(update={"suggestions": tuple(suggestions), "suggestions_note": ""})
