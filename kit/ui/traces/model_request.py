"""What a model was sent, for a page: the stable prompt and the tools folded, then every message by its role."""

import json
from html import escape

import streamlit as st

from kit.core.bodies.call import RequestMessage
from kit.core.display.count import many
from kit.stores.model_request import ModelRequest, as_json
from kit.ui.shared.wording import beginning

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
    parts: list[str] = []
    if request.gap:
        parts.append(f'<p class="note">Not known: {escape(request.gap)}.</p>')
    if note:
        parts.append(f'<p class="note">{escape(note)}</p>')
    if request.prompt:
        parts.append(_folded("Stable prompt", f"cohort {request.cohort}", _text(request.prompt)))
    if request.tools:
        schemas = "".join(map(_tool, request.tools))
        parts.append(_folded("Tools", many(len(request.tools), "schema"), schemas))
    if request.rest.strip():
        parts.append(_message(RequestMessage(role="system", text=request.rest.strip())))
    if request.history:
        messages = "".join(map(_message, request.history))
        parts.append(_folded("Earlier turns", many(len(request.history), "message"), messages))
    parts += map(_message, request.messages)
    return f'<section class="request">{"".join(parts)}</section>'


def _folded(name: str, size: str, body: str) -> str:
    # A box that scrolls has to be within reach of the keyboard.
    body = f'<div class="held" tabindex="0" role="group" aria-label="{name}">{body}</div>'
    return f"<details><summary><b>{name}</b> {escape(size)}</summary>{body}</details>"


def _tool(schema: dict[str, object]) -> str:
    return _text(json.dumps(schema.get("function", schema), indent=1, ensure_ascii=False))


def _message(message: RequestMessage) -> str:
    role = ROLES.get(message.role, message.role)
    html = f"<b>{escape(role)}</b>{_text(message.text)}"
    for call in message.calls:
        arguments = json.dumps(call.args, indent=1, ensure_ascii=False)
        html += f"<pre>→ {escape(call.name)} {escape(arguments)}</pre>"
    return f'<div class="{escape(message.role)}">{html}</div>'


def _text(text: str) -> str:
    if not text:
        return ""
    return f"<pre>{escape(beginning(text, LONGEST, 'the JSON'))}</pre>"
