"""A user's message, made safe to pass on: control characters out, pictures beside the words, an
answer to nothing, sizes."""

import base64
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from kit.compose.locale import Sentences
from kit.core.errors import PictureError
from kit.core.language.controls import without_controls
from kit.core.picture import Picture, mark_pictures
from kit.models.message import human_text
from kit.models.usage import CHARACTERS

SIGNS = " .,;:!?¡¿…-–—_*\"'"
"""A message of these alone asks nothing."""
LONGEST = 16_000
"""Characters a message may have; longer ones are declined in words, never cut silently."""
PICTURE = 1000
"""Tokens a picture is taken for before it is sent; providers take from a few hundred to 1,500."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(message: str) -> str:
    """The message without control and surrogate characters; line breaks and tabs stay."""
    return _SURROGATE.sub("", without_controls(message)).strip()


def decline(message: str, words: Sentences) -> str | None:
    """What to answer, without any model, to a cleaned message that cannot be worked with; None when it can."""
    if not message.strip(SIGNS):
        return words.no_question
    if len(message) > LONGEST:
        return words.too_long.format(length=f"{len(message):,}", limit=f"{LONGEST:,}")
    return None


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
    images: list[dict[str, str]] = []
    for p in pictures:
        images.append(
            {
                "type": "image",
                "mime_type": p.media_type,
                "base64": base64.b64encode(p.data).decode(),
            }
        )
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
    blocks: list[dict[str, Any]] = []
    for block in cast("list[Any]", message.content):
        if isinstance(block, dict):
            blocks.append(cast("dict[str, Any]", block))
    pictures = sum(block.get("type") == "image" for block in blocks)
    return len(str(message.text)) + pictures * PICTURE * CHARACTERS
