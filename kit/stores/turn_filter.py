"""Which stored turns a list shows, what they can be chosen by, and conversations as a list has them."""

from typing import Literal, NamedTuple

from kit.core.display.turn_parts import Ending
from kit.core.record import TurnRecord
from kit.core.value import Value

AGAIN = "again:"
"""How the id of a session begins in which a turn is asked again: a list of conversations leaves it out."""
FailureAxis = Literal["invocation", "data", "partial", "cap"]
"""A sub-agent failed, data failed, some and not all of several failed, more was asked for than the cap allows."""


class TurnFilter(Value):
    """A filter of turns; a field that is empty lets every turn through."""

    text: str = ""
    """Words of the question, in any order and case."""
    endings: tuple[Ending, ...] = ()
    agents: tuple[str, ...] = ()
    """Any of these was asked."""
    axes: tuple[FailureAxis, ...] = ()
    patterns: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    session: str = ""
    at_least: float = 0.0
    """Seconds a turn took."""


class TurnPage(NamedTuple):
    """Some of the turns that pass a filter, newest first."""

    turns: tuple[TurnRecord, ...]
    total: int
    """All that pass it."""
    longest: float
    """Seconds of the longest of all."""


class TurnChoices(NamedTuple):
    """What the turns of one principal can be chosen by."""

    total: int
    patterns: tuple[str, ...]
    models: tuple[str, ...]
    slow: float
    """Seconds that 95 % of them stayed below or took (nearest rank); 0 without an ended turn."""


class Conversation(NamedTuple):
    """A session with at least one turn. Times are seconds since the epoch."""

    id: str
    first: str
    """Its first question."""
    turns: int
    newest: float
    """When its newest turn began."""
