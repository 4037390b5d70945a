"""Cards: the deck as it is bound, and what each agent is told."""

import streamlit as st

from kit.settings import Settings
from kit.ui.frame import STYLE, open_host, told


def page() -> None:
    """Draws the page."""
    st.html(STYLE)
    top = st.empty()
    with told(top):
        deck = open_host(Settings.read()).kit.deck
        st.dataframe([{"id": card.id, "description": card.description} for card in deck.cards.values()])
