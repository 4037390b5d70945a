"""The text the offline stand-in takes for a picture: a PNG's own description, else the words of its file name."""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from langchain_core.messages import BaseMessage

_SAYS = ("description", "caption", "title", "comment")
"""Keywords of a PNG's text chunks that tell what it shows, the best first."""
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
    """The description a PNG carries in its text chunks (tEXt, iTXt); empty for any other file."""
    texts: dict[str, str] = {}
    for kind, chunk in _chunks(data):
        keyword, _, body = chunk.partition(b"\0")
        name = keyword.decode("latin-1").lower()
        if kind == b"tEXt":
            texts[name] = body.decode("latin-1")
        elif kind == b"iTXt" and body[:1] == b"\0":
            # Not packed; two more fields, of languages, stand before the text.
            texts[name] = body[2:].split(b"\0", 2)[-1].decode("utf-8", "replace")
    for name in _SAYS:
        if text := texts.get(name, "").strip():
            return " ".join(text.split())[:_LONGEST]
    return ""


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    position = 8
    while data.startswith(b"\x89PNG") and position + 8 <= len(data):
        length = int.from_bytes(data[position : position + 4])
        yield data[position + 4 : position + 8], data[position + 8 : position + 8 + length]
        position += length + 12


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
