"""What a model was sent, for a page: the stable prompt and the tools folded, then every message by its role."""

import json
from collections.abc import Iterable
from html import escape

import streamlit as st

from kit.core.bodies.call import RequestMessage
from kit.core.display.count import many
from kit.stores.model_request import ModelRequest, as_json

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
    """Returns a request as HTML; every word in it is escaped."""
    notes = "".join(
        f'<p class="note">{escape(text)}</p>'
        for text in (request.gap and f"Not known: {request.gap}.", note)
        if text
    )
    parts = [
        notes,
        _folded("Stable prompt", f"cohort {request.cohort}", _text(request.prompt))
        if request.prompt
        else "",
    ]
    if request.tools:
        parts.append(
            _folded("Tools", many(len(request.tools), "schema"), "".join(map(_tool, request.tools)))
        )
    if request.rest.strip():
        parts.append(_message(RequestMessage(role="system", text=request.rest.strip())))
    if request.history:
        lines = many(len(request.history), "message")
        parts.append(_folded("Earlier turns", lines, "".join(map(_message, request.history))))
    return (
        f'<section class="request">{"".join([*parts, *map(_message, request.messages)])}</section>'
    )


def _folded(name: str, size: str, body: str) -> str:
    # a box that scrolls, by keyboard too
    body = f'<div class="held" tabindex="0" role="group" aria-label="{name}">{body}</div>'
    return f"<details><summary><b>{name}</b> {escape(size)}</summary>{body}</details>"


def _tool(schema: dict[str, object]) -> str:
    return _text(json.dumps(schema.get("function", schema), indent=1, ensure_ascii=False))


def _message(message: RequestMessage) -> str:
    role = ROLES.get(message.role, message.role)
    head = f'<div class="{escape(message.role)}"><b>{escape(role)}</b>'
    calls = "".join(_calls(message))
    return f"{head}{_text(message.text)}{calls}</div>"


def _calls(message: RequestMessage) -> Iterable[str]:
    for call in message.calls:
        yield f"<pre>→ {escape(call.name)} {escape(json.dumps(call.args, indent=1, ensure_ascii=False))}</pre>"


def _text(text: str) -> str:
    if len(text) <= LONGEST:
        cut = text
    else:
        cut = text[:LONGEST] + f"\n… {len(text) - LONGEST:,} more characters in the JSON"
    if text:
        return f"<pre>{escape(cut)}</pre>"
    return ""
