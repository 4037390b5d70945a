"""A model's words without the components written into them: narration goes on, components are kept as payloads."""

import re
from typing import Any, Protocol

from langchain_core.messages import AIMessage

from kit.core.limits import SIZE, excess, read_json
from kit.core.outcome import ComponentPayload
from kit.core.schema.json_value import is_object

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
    components = tuple([_payload(piece) for piece in _WHOLE.findall(text)])
    if components:
        text = _WHOLE.sub("", text)
        # A component inside another leaves the halves of the outer one: no model writes that, and the text ends there.
        halves = _WHOLE.search(text)
        text = (text[: halves.start()] if halves else text).strip()
    return text, components


def narrated(message: AIMessage) -> tuple[AIMessage, tuple[ComponentPayload, ...]]:
    """A message with the components taken out of its text, whether that is a string or blocks."""
    content: Any = message.content
    if isinstance(content, str):
        text, components = narration(content)
        return message.model_copy(update={"content": text}), components
    blocks: list[Any] = []
    parts: list[ComponentPayload] = []
    for block in content:
        fields = block if is_object(block) else {}
        words = fields.get("text")
        if isinstance(words, str):
            text, components = narration(words)
            blocks.append({**fields, "text": text})
            parts += components
        else:
            blocks.append(block)
    return message.model_copy(update={"content": blocks}), tuple(parts)


class NarrationFilter:
    """Passes on streamed text as it comes, without the components in it; what may become one is
    held until it is clear."""

    def __init__(self, hear: Hear):
        self._hear = hear
        self._buffer = ""
        self._searched = 0
        """Characters of the buffer that hold no end of a component."""

    def __call__(self, piece: str, tool: str = "", /) -> None:
        if not piece:
            self._hear("", tool)
            return
        self._buffer += piece
        while self._buffer:
            start = self._buffer.find("<")
            # everything before it, or all of it
            if start:
                self._say(len(self._buffer) if start < 0 else start)
            elif len(self._buffer) < len(MARK) and MARK.startswith(self._buffer.lower()):
                return
            elif not self._buffer[: len(MARK)].lower().startswith(MARK):
                self._say(1)
            else:
                # without a ">" in what is new the search of the last piece would be made again
                end = self._end_of_component() if ">" in piece else -1
                if end < 0:
                    return
                self._buffer = self._buffer[end:]
                self._searched = 0

    def end(self) -> None:
        """Says what was held back and is no component; call it once the model is done."""
        if not self._buffer[: len(MARK)].lower().startswith(MARK):
            self._say(len(self._buffer))
        self._buffer = ""

    def _end_of_component(self) -> int:
        """Where the component ends that the buffer begins with; -1 while that is not clear."""
        opening = _OPENING.match(self._buffer)
        if opening is None:
            return -1
        if opening[2]:
            return opening.end()
        closing = _CLOSING.search(self._buffer, self._searched)
        self._searched = max(self._searched, self._buffer.rfind("<", self._searched))
        if closing:
            return closing.end()
        return -1

    def _say(self, length: int) -> None:
        text = self._buffer[:length]
        self._buffer = self._buffer[length:]
        if text:
            self._hear(text)


def narration_filter(hear: Hear) -> NarrationFilter:
    """Wraps a listener so that it gets text without components; one that is wrapped already is returned."""
    if isinstance(hear, NarrationFilter):
        return hear
    return NarrationFilter(hear)


def _payload(piece: str) -> ComponentPayload:
    opening = _OPENING.match(piece)
    kind = None
    inner = piece[len(MARK) :]
    if opening is not None:
        kind = _TYPE.search(opening[1])
        inner = piece[opening.end() :]
    body = _CLOSING.sub("", inner).strip()
    try:
        payload: Any = read_json(body) if body else {}
    except ValueError:
        payload = None
    if not is_object(payload) or excess(payload) is not None:
        payload = {"text": body[:SIZE]}
    return ComponentPayload(type=kind[1] if kind else "component", payload=payload)
