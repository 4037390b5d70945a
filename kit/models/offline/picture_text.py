"""The text the offline stand-in takes for a picture: the words of its file name."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from langchain_core.messages import BaseMessage

_MARK = re.compile(r"\[picture: ([^\[\]\n]+)\]")
_NAMELESS = re.compile(
    r"\b(?:img|image|photo|picture|pic|screenshot|scan|dsc|pxl|unnamed|untitled|download|upload)\b",
    re.I,
)


def describe_pictures(message: BaseMessage) -> str:
    """What the pictures of a message show, as far as their names say so; empty where none does."""
    content: Any = message.content
    if isinstance(content, str):
        return ""
    for block in content:
        if isinstance(block, Mapping) and "image" in str(cast("Any", block).get("type")):
            return "; ".join(_file_name_words(str(message.text)))
    return ""


def _file_name_words(text: str) -> Iterator[str]:
    """What file names say: `till-receipt_2.jpg` is a till receipt, `IMG_0042.jpg` is nothing."""
    for name in _MARK.findall(text):
        words = re.sub(r"[\W\d_]+", " ", re.sub(r"\.\w{3,4}$", "", name))
        if name_words := _NAMELESS.sub(" ", words).split():
            yield " ".join(name_words)
