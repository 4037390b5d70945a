"""What a request asks for, in English: several things side by side, and things that are to be left out."""

import re
from dataclasses import dataclass

_BESIDE = re.compile(r"[,;&+]|\b(?:and|or|plus)\b")
"""What stands between two things of one list."""
_LEAVES_OUT = re.compile(
    r"\b(?:without|except for|except|excluding|other than|everything but|anything but|all but"
    r"|(?:do not|don't|dont) (?:show|want|need|give|like)(?: me)?"
    r"|not(?! (?:a|an|the|my|any|sure|only|just|yet|too|so|that|know|really|have|been|working)\b))\b"
)
"""What stands before a thing that is to be left out. "Not sure" and "not yet" leave nothing out."""
_UNTIL = re.compile(r"[,.;!?]|\b(?:and|but|just|only)\b")
"""Where what is to be left out ends."""
_ASKS_ITSELF = re.compile(
    r"\b(?:how|what|when|where|who|why|which|i|my|tell|show|can|could|do|does|did|will|would|have|has)\b"
)
"""Words by which a part of a message is a question of its own, and no further thing of a list."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a request asks for, in its words."""

    things: tuple[str, ...]
    """Side by side: of each there is to be something in the answer."""
    left_out: tuple[str, ...] = ()
    """Of these there is to be nothing."""


def read_request(text: str) -> Request:
    """Reads what a request lists. A part that is a question of its own belongs to the thing before it."""
    kept_text = ""
    left_out: list[str] = []
    rest = text.lower()
    marker = _LEAVES_OUT.search(rest)
    while marker is not None:
        kept_text += f"{rest[: marker.start()]} "
        rest = rest[marker.end() :]
        end = _UNTIL.search(rest)
        phrase_end = len(rest) if end is None else end.start()
        left_out += rest[:phrase_end].split(" or ")
        rest = rest[phrase_end:]
        marker = _LEAVES_OUT.search(rest)
    things: list[str] = []
    for part in _BESIDE.split(kept_text + rest):
        if not part.strip():
            continue
        if things and _ASKS_ITSELF.search(part):
            things[-1] += f" {part}"
        else:
            things.append(part)
    return Request(tuple(things), tuple(left_out))
