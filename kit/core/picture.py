"""Pictures that come with a message: checked when made, told of in words, known to the trace by their hash."""

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Literal, get_args

from pydantic import Field, model_validator

from kit.core.errors import PictureError
from kit.core.value import Value

MediaType = Literal["image/png", "image/jpeg", "image/webp", "image/gif"]
LARGEST = 5 * 2**20
"""Bytes a picture may have."""
MOST_PICTURES = 4
"""Pictures a message may bring."""
_NAME = 60
"""Characters of a caption that stand in a conversation."""
_KINDS = "PNG, JPEG, WebP or GIF"
_BEGINS: dict[MediaType, re.Pattern[bytes]] = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
    "image/gif": re.compile(rb"GIF8[79]a"),
}
_MARK = re.compile(r"\[picture(?:: [^\[\]\n]*)?\]")


class PictureRef(Value):
    """All that a trace, a log or a store ever holds of a picture."""

    media_type: MediaType
    size: int
    """Bytes."""
    sha256: str
    caption: str = ""


class Picture(Value):
    """A picture a user sends with a message. Raises PictureError when it is too large or not what it says it is."""

    media_type: MediaType
    data: bytes = Field(repr=False)
    caption: str = ""
    """What the sender calls it, such as its file name: this much of it later turns are told."""

    # Before the fields are: a PictureError says what to send, where pydantic would list the types.
    @model_validator(mode="before")
    @classmethod
    def _check_media_type(cls, fields: dict[str, object]) -> dict[str, object]:
        if fields.get("media_type") not in get_args(MediaType):
            raise PictureError(f"a picture cannot be {fields.get('media_type')!r}: send {_KINDS}")
        return fields

    @model_validator(mode="after")
    def _check_content(self) -> "Picture":
        name = self.caption or "the picture"
        if len(self.data) > LARGEST:
            size = f"{len(self.data) / 2**20:.1f} MB"
            raise PictureError(
                f"{name} has {size}; at most {LARGEST // 2**20} MB are taken: send a smaller copy"
            )
        # A provider refuses the whole request for a picture that is not what it is called.
        actual = sniff_media_type(self.data)
        if actual != self.media_type:
            kind = actual or "no picture that can be read"
            raise PictureError(
                f"{name} is said to be {self.media_type} and is {kind}: send {_KINDS}"
            )
        return self

    @classmethod
    def of(cls, data: bytes, caption: str = "") -> "Picture":
        """The picture these bytes are. Raises PictureError when they are none."""
        kind = sniff_media_type(data)
        if kind is None:
            raise PictureError(f"{caption or 'this'} is no picture that can be read: send {_KINDS}")
        return cls(media_type=kind, data=data, caption=caption)

    @cached_property
    def ref(self) -> PictureRef:
        """The same picture without its bytes."""
        digest = hashlib.sha256(self.data).hexdigest()
        return PictureRef(
            media_type=self.media_type, size=len(self.data), sha256=digest, caption=self.caption
        )

    @property
    def words(self) -> str:
        """What it is, for whoever is not shown it."""
        name = self.media_type.removeprefix("image/").upper()
        return f"a picture, {name}, {len(self.data):,} bytes"

    @property
    def mark(self) -> str:
        """What stands for it in a text."""
        # A caption is a stranger's file name: a bracket in it would end the mark.
        name = " ".join(re.sub(r"[\[\]\x00-\x1f\x7f]", " ", self.caption).split())[:_NAME]
        return f"[picture: {name}]" if name else "[picture]"


def image_block(picture: Picture) -> dict[str, str]:
    """A picture as a block of a message's content."""
    return {
        "type": "image",
        "mime_type": picture.media_type,
        "base64": base64.b64encode(picture.data).decode(),
    }


def sniff_media_type(data: bytes) -> MediaType | None:
    """What the first bytes say; None for anything that is not taken."""
    for kind, begins in _BEGINS.items():
        if begins.match(data):
            return kind
    return None


def mark_pictures(text: str, pictures: Sequence[Picture]) -> str:
    """A message as history, agents and people read it: a mark for each picture, then the words typed."""
    if pictures:
        return " ".join([*(picture.mark for picture in pictures), strip_marks(text)]).strip()
    return text


def strip_marks(text: str) -> str:
    """The words of such a message without the marks; empty when pictures came alone."""
    if "[picture" in text:
        return _MARK.sub(" ", text).strip()
    return text


def check_count(pictures: Sequence[Picture]) -> tuple[Picture, ...]:
    """The same pictures. Raises PictureError when there are more than a message may bring."""
    if len(pictures) > MOST_PICTURES:
        count = f"at most {MOST_PICTURES} pictures and this one has {len(pictures)}"
        raise PictureError(f"a message takes {count}: send the rest in another")
    return tuple(pictures)
