"""Traces: the turns of who is looking, and one of them in full."""

import streamlit as st

from kit.settings import Settings
from kit.ui.frame import STYLE, open_host, told, visitor


def page() -> None:
    """Draws the page."""
    st.html(STYLE)
    top = st.empty()
    with told(top):
        host = open_host(Settings.read())
        who = visitor(host)
        turns = host.kit.store.turns(tenant_id=who.tenant_id, user_id=who.user_id)
        st.dataframe([{"question": turn.message, "status": turn.status, "seconds": turn.seconds} for turn in turns])
