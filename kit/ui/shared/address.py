"""The page's address: its session, its visitor, the scenario. It survives a reload and a change of page."""

import uuid
from urllib.parse import urlencode

import streamlit as st

PARTS = (
    "session",
    "tenant",
    "user",
    "fault",
    "cap",
    "pattern",
    "model",
)
"""Parts of the address that belong to all pages."""


def keep() -> None:
    """Puts back what a change of page took out of the address, and gives a new visitor a session."""
    parts: dict[str, list[str]] = st.session_state.setdefault("address", {})
    for name in PARTS:
        # Streamlit drops the query on a change of page.
        if name in st.query_params:
            parts[name] = st.query_params.get_all(name)
        elif name in parts:
            st.query_params[name] = parts[name]
    if not read("session"):
        new_session()


def read(name: str) -> str:
    """Returns the last value of a part of the address; empty when it has none."""
    return st.query_params.get(name, "")


def read_all(name: str) -> list[str]:
    """Returns every value of a part of the address."""
    return st.query_params.get_all(name)


def put(name: str, *values: str) -> None:
    """Sets the values of a part of the address; no value takes it out."""
    parts: dict[str, list[str]] = st.session_state.setdefault("address", {})
    if values:
        parts[name] = list(values)
        st.query_params[name] = list(values)
    else:
        parts.pop(name, None)
        st.query_params.pop(name, None)


def new_session() -> None:
    """Gives the page an address of its own, with nothing asked yet."""
    st.session_state["fresh"] = uuid.uuid4().hex
    put("session", st.session_state["fresh"])


def of_visitor() -> dict[str, str]:
    """Returns the parts that name the visitor, for links that open in a tab of their own."""
    mapping: dict[str, str] = {}
    for name in ("tenant", "user"):
        if read(name):
            mapping[name] = read(name)
    return mapping


def link(page: str, **query: str) -> str:
    """Returns the address of another page for the same visitor, relative to the one that is open."""
    return f"{page}?{urlencode({**query, **of_visitor()})}"
