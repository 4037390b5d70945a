"""A model's words without the components written into them: narration goes on, components are kept as payloads."""

import json
import re
from typing import Any, Protocol, cast

from langchain_core.messages import AIMessage

from kit.core.limits import SIZE, excess
from kit.core.outcome import ComponentPayload

MARK = "<component"
_CLOSING = re.compile(r"</component\s*>", re.I)
_OPENING = re.compile(r"\A<component\b([^>]*?)(/?)>", re.I)
_TYPE = re.compile(r"""\btype\s*=\s*["']?([^"'\s>/]+)""", re.I)
_WHOLE = re.compile(r"<component\b[^>]*/>|<component\b.*?(?:</component\s*>|\Z)", re.I | re.S)


class Hear(Protocol):
    """Gets every piece of text as it arrives; "" says that a call of the named tool has begun to arrive."""

    def __call__(self, piece: str, tool: str = "", /) -> None: ...


def narration(text: str) -> tuple[str, tuple[ComponentPayload, ...]]:
    """Takes `<component type="...">{json}</component>` out of a text; one that was cut off ends with the text.

    What is no JSON object is kept under the payload's key `text`, so that nothing said is lost.
    """
    components: list[ComponentPayload] = []
    while _WHOLE.search(text):  # taking one out may bring two halves of another together
        components += [_payload(piece) for piece in _WHOLE.findall(text)]
        text = _WHOLE.sub("", text)
    return text.strip() if components else text, tuple(components)


def narrated(message: AIMessage) -> tuple[AIMessage, tuple[ComponentPayload, ...]]:
    """A message with the components taken out of its text, whether that is a string or blocks."""
    content: Any = message.content
    if isinstance(content, str):
        text, components = narration(content)
        return message.model_copy(update={"content": text}), components
    blocks: list[Any] = []
    parts: list[ComponentPayload] = []
    for block in cast("list[Any]", content):
        if isinstance(block, dict) and isinstance(words := cast("dict[str, Any]", block).get("text"), str):
            text, components = narration(words)
            blocks.append({**cast("dict[str, Any]", block), "text": text})
            parts += components
        else:
            blocks.append(block)
    return message.model_copy(update={"content": blocks}), tuple(parts)


class NarrationFilter:
    """Passes on streamed text as it comes, without the components in it; what may become one is held until it is clear."""

    def __init__(self, hear: Hear):
        self._hear = hear
        self._buffer = ""

    def __call__(self, piece: str, tool: str = "", /) -> None:
        if not piece:
            self._hear("", tool)
            return
        self._buffer += piece
        while self._buffer:
            at = self._buffer.find("<")
            if at:  # everything before it, or all of it
                self._say(len(self._buffer) if at < 0 else at)
            elif len(self._buffer) < len(MARK) and MARK.startswith(self._buffer.lower()):
                return
            elif not self._buffer[: len(MARK)].lower().startswith(MARK):
                self._say(1)
            else:
                whole = _WHOLE.match(self._buffer) if ">" in piece else None
                if whole is None or not (whole[0].endswith("/>") or _CLOSING.search(whole[0])):
                    return
                self._buffer = self._buffer[whole.end() :]

    def end(self) -> None:
        """Says what was held back and is no component; call it once the model is done."""
        if not self._buffer[: len(MARK)].lower().startswith(MARK):
            self._say(len(self._buffer))
        self._buffer = ""

    def _say(self, length: int) -> None:
        text, self._buffer = self._buffer[:length], self._buffer[length:]
        if text:
            self._hear(text)


def narration_filter(hear: Hear) -> NarrationFilter:
    """Wraps a listener so that it gets text without components; one that is wrapped already is returned."""
    return hear if isinstance(hear, NarrationFilter) else NarrationFilter(hear)


def _payload(piece: str) -> ComponentPayload:
    opening = _OPENING.match(piece)
    body = _CLOSING.sub("", piece[opening.end() :] if opening else piece[len(MARK) :]).strip()
    kind = _TYPE.search(opening[1]) if opening else None
    try:
        payload: Any = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict) or excess(cast("Any", payload)) is not None:
        payload = {"text": body[:SIZE]}
    return ComponentPayload(type=kind[1] if kind else "component", payload=cast("dict[str, Any]", payload))
