"""Messages on their way to a model and back.

A user's message is made safe to pass on: control characters out, pictures beside the words. A model's tool calls get
a form that every endpoint takes back: each id once, readable, and none named that is not answered.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.tool import ToolCall

from kit.compose.locale import Sentences
from kit.core.errors import PictureError
from kit.core.language.controls import CONTROL, without_controls
from kit.core.limits import excess
from kit.core.picture import Picture, image_block, mark_pictures
from kit.core.schema.json_value import is_object
from kit.models.message import CHARACTERS, human_text, system_text

Thread = list[BaseMessage]
"""A conversation as a model reads it, its prompt first."""
SIGNS = " .,;:!?¡¿…-–—_*\"'"
"""A message of these alone asks nothing."""
LONGEST = 16_000
"""Characters a message may have; longer ones are declined in words, never cut silently."""
PICTURE = 1000
"""Tokens a picture is taken for before it is sent; providers take from a few hundred to 1,500."""


def clean(message: str) -> str:
    """The message without control and surrogate characters; line breaks and tabs stay."""
    if CONTROL.search(message):
        message = without_controls(message)
    return message.strip()


def decline(message: str, words: Sentences) -> str | None:
    """What to answer, without any model, to a cleaned message that cannot be worked with; None when it can."""
    if not message.strip(SIGNS):
        return words.no_question
    if len(message) > LONGEST:
        return words.too_long.format(length=f"{len(message):,}", limit=f"{LONGEST:,}")
    return None


def instructed(thread: Thread, text: str) -> Thread:
    """The conversation with a text more at the end of its prompt."""
    return [system_text(f"{thread[0].text}\n\n{text}"), *thread[1:]]


def read_picture(path: Path | str) -> Picture:
    """The picture in a file, called by the file's name. Raises PictureError when it is missing or none."""
    path = Path(path)
    try:
        return Picture.of(path.read_bytes(), path.name)
    except OSError as error:
        raise PictureError(f"cannot read the picture {path}: {error.strerror or error}") from error


def human_message(text: str, pictures: Sequence[Picture]) -> HumanMessage:
    """A message with its pictures as a model gets it: the words, then one content block a picture."""
    if not pictures:
        return human_text(text)
    images = [image_block(picture) for picture in pictures]
    return HumanMessage(content=[{"type": "text", "text": mark_pictures(text, pictures)}, *images])


def size_of(messages: Sequence[BaseMessage]) -> int:
    """Estimates how many tokens a model will read."""
    size = 0
    for message in messages:
        content = message.content
        size += len(content) if type(content) is str else _whole_size(message)
        if type(message) is AIMessage and message.tool_calls:
            size += len(str(message.tool_calls))
    # Rounded up: an estimate that is too low would let a call over its budget.
    return -(-size // CHARACTERS)


def _whole_size(message: BaseMessage) -> int:
    """Characters of a message of blocks, a picture taken for as many as its tokens would be."""
    pictures = 0
    for block in message.content:
        if is_object(block) and block.get("type") == "image":
            pictures += 1
    return len(str(message.text)) + pictures * PICTURE * CHARACTERS


_BLOCKS = ("function_call", "custom_tool_call", "tool_call", "tool_use")
"""Kinds of content blocks in which providers repeat a call."""
_RAW = ("tool_calls", "function_call")
UNREAD = "unread_arguments"
"""The only argument of a call whose arguments cannot be parsed: what the model wrote, cut short."""
_LONGEST = 200
_JSON = json.JSONDecoder(strict=False)


def calls_of(message: AIMessage) -> list[ToolCall]:
    """Every call of a reply in order, each with an id of its own; arguments that are no JSON object stand under UNREAD.

    A model may repeat or forget an id, by which results are matched: such a call gets one by its position.
    LangChain reads what it can of broken JSON, but half an argument is another argument.
    """
    calls: list[ToolCall] = []
    if isinstance(message, AIMessageChunk):
        calls += map(_read, message.tool_call_chunks)
    else:
        for call in message.tool_calls:
            calls.append(call if excess(call["args"]) is None else _unread(call, str(call["args"])))
        calls += map(_read, message.invalid_tool_calls)
    ids: set[str | None] = set()
    for call in calls:
        ids.add(call["id"])
    # Nearly every reply: nothing is copied for it.
    if len(ids) == len(calls) and None not in ids:
        return calls
    apart: dict[str, ToolCall] = {}
    for position, call in enumerate(calls, 1):
        call_id = call["id"]
        if call_id and call_id not in apart:
            fresh = call_id
        else:
            fresh = f"{call_id or 'call'}-{position}"
        apart[fresh] = ToolCall({**call, "id": fresh})
    return list(apart.values())


def _read(call: Any) -> ToolCall:
    text: str = call["args"] or "{}"
    try:
        args: Any = _JSON.decode(text)
    except (ValueError, RecursionError):
        args = None
    if type(args) is not dict or excess(cast("Any", args)) is not None:
        return _unread(call, text)
    return ToolCall(
        name=call["name"] or "", args=cast("dict[str, Any]", args), id=call["id"], type="tool_call"
    )


def _unread(call: Any, text: str) -> ToolCall:
    return ToolCall(
        name=call["name"] or "", args={UNREAD: text[:_LONGEST]}, id=call["id"], type="tool_call"
    )


def with_calls(message: AIMessage, calls: Sequence[ToolCall]) -> AIMessage:
    """The message with exactly these calls and all else that it carries: text, reasoning, usage,
    the provider's metadata.

    Where its content names a call that is not among them, or one twice, that block goes: an
    endpoint wants every call it is sent to be answered, in whichever place it finds it.
    """
    open_calls: set[tuple[Any, Any]] = set()
    for call in calls:
        open_calls.add((call["id"], call["name"]))
    content: Any = message.content
    if not isinstance(content, str):
        blocks: list[Any] = []
        for block in content:
            if is_object(block) and block.get("type") in _BLOCKS:
                key = block.get("call_id") or block.get("id"), block.get("name")
                if key not in open_calls:
                    continue
                open_calls.remove(key)
            blocks.append(block)
        content = blocks
    extra = {name: value for name, value in message.additional_kwargs.items() if name not in _RAW}
    update = {
        "content": content,
        "tool_calls": list(calls),
        "invalid_tool_calls": [],
        "additional_kwargs": extra,
    }
    return message.model_copy(update=update)
