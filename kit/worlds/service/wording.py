"""What the wordings of every world share: the shape of a list that was searched, lists in words, rows as components."""

from collections.abc import Iterable, Sequence
from typing import Literal

from kit.core.envelope import Inbound
from kit.core.outcome import ComponentPayload

Match = Literal["named", "closest", "all"]


class Searched(Inbound):
    """Of every list: how well it fits what was asked for, and how many rows fit in all."""

    match: Match = "all"
    topic: str = ""
    found: int = 0
    not_found: str = ""
    """What was asked for beside the topic, and is not there."""
    left_out: str = ""
    """What was asked to be left out."""


def join_words(items: Sequence[str]) -> str:
    """a, b and c."""
    if len(items) == 1:
        return items[0]
    if items:
        return f"{', '.join(items[:-1])} and {items[-1]}"
    return ""


def components(kind: str, rows: Iterable[Inbound]) -> tuple[ComponentPayload, ...]:
    """Each row as a component of a type, for the page and for render tools."""
    return tuple(ComponentPayload(type=kind, payload=row.model_dump(mode="json")) for row in rows)
