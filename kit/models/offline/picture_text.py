"""The text the offline stand-in takes for a picture: a PNG's own description, else the words of its file name."""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from langchain_core.messages import BaseMessage

_TEXT = re.compile(rb"tEXt(?:Description|Caption|Title|Comment)\0", re.I)
"""Where a PNG says what it shows."""
_LONGEST = 400
"""Characters of a description that are read."""
_MARK = re.compile(r"\[picture: ([^\[\]\n]+)\]")
_NAMELESS = re.compile(
    r"\b(?:img|image|photo|picture|pic|screenshot|scan|dsc|pxl|unnamed|untitled|download|upload)\b",
    re.I,
)


def describe_pictures(message: BaseMessage) -> str:
    """What the pictures of a message show, as far as their files say so; empty where nothing does."""
    content: Any = message.content
    if isinstance(content, str):
        return ""
    descriptions: list[str] = []
    has_picture = False
    for block in content:
        if isinstance(block, Mapping) and "image" in str(cast("Any", block).get("type")):
            has_picture = True
            descriptions.append(png_description(_bytes(cast("Any", block))))
    if has_picture and not any(descriptions):
        descriptions = list(_file_name_words(str(message.text)))
    return "; ".join(filter(None, descriptions))


def png_description(data: bytes) -> str:
    """The description that a PNG carries in a chunk of text; empty for any other file."""
    match = _TEXT.search(data)
    if match is None or not data.startswith(b"\x89PNG"):
        return ""
    # Four bytes before its name say how long what follows the name of a chunk is.
    length = int.from_bytes(data[match.start() - 4 : match.start()])
    text = data[match.end() : match.start() + 4 + length].decode("latin-1")
    return " ".join(text.split())[:_LONGEST]


def _bytes(block: Mapping[str, Any]) -> bytes:
    """Of a block in LangChain's form or OpenAI's; none for a picture that is elsewhere."""
    url = block.get("image_url")
    if isinstance(url, Mapping):
        url = cast("Mapping[str, Any]", url).get("url")
    data = block.get("base64") or str(url or "").partition(";base64,")[2]
    try:
        return base64.b64decode(str(data), validate=True)
    except binascii.Error:
        return b""


def _file_name_words(text: str) -> Iterator[str]:
    """What file names say: `till-receipt_2.jpg` is a till receipt, `IMG_0042.jpg` is nothing."""
    for name in _MARK.findall(text):
        words = re.sub(r"[\W\d_]+", " ", re.sub(r"\.\w{3,4}$", "", name))
        if name_words := _NAMELESS.sub(" ", words).split():
            yield " ".join(name_words)
