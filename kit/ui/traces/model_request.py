"""What a model was sent, for a page: the stable prompt and the tools folded, then every message by its role."""

import streamlit as st

from kit.stores.model_request import ModelRequest, as_json
from kit.ui.shared.template import render

ROLES = {"system": "System", "human": "User", "ai": "Assistant", "tool": "Tool"}
LONGEST = 6_000
"""Characters of a message that are shown; its JSON has all of them."""


def draw_request(request: ModelRequest, note: str = "") -> None:
    """Draws a request; `note` says what is to be known of its prompt."""
    st.caption("Messages as sent")
    st.html(request_html(request, note))
    with st.expander("As JSON, to copy", icon=":material/data_object:"):
        st.code(as_json(request), language="json", wrap_lines=True)


def request_html(request: ModelRequest, note: str = "") -> str:
    """Returns a request as HTML."""
    return render("model_request", request=request, note=note, roles=ROLES, longest=LONGEST)
