"""What a model was sent, for a page: the stable prompt and the tools folded, then every message by its role."""

import streamlit as st

from kit.stores.model_request import ModelRequest, as_json
from kit.ui.shared.template import render

ROLES = {"system": "System", "human": "User", "ai": "Assistant", "tool": "Tool"}
LONGEST = 6_000
"""Characters of a message that are shown; its JSON has all of them."""


def draw_request(request: ModelRequest) -> None:
    """Draws a request."""
    st.caption("Messages as sent")
    st.html(request_html(request))
    with st.expander("As JSON, to copy", icon=":material/data_object:"):
        st.code(as_json(request), language="json", wrap_lines=True)


def request_html(request: ModelRequest) -> str:
    """Returns a request as HTML."""
    return render("model_request", request=request, roles=ROLES, longest=LONGEST)
