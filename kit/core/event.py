"""Everything that happens in a turn, as one tagged union; app, notebooks, tests and traces read the
same stream.

Emitters send a Body; its kinds are in `kit/core/bodies`. Only the turn's log stamps it into an
Event, so nobody else handles numbers, clocks or spans. A body whose kind ends in `_started` opens
the span it is stamped with; the matching `_ended` (and `completed`) closes it.

A new kind is a class in one file of `kit/core/bodies`, named in the union at its end. The page, the terminal and the
trace pass over kinds that they do not know; docs/openapi.json holds all kinds and is written anew.
"""

from typing import Annotated

from pydantic import Field

from kit.core.bodies.call import CallBody
from kit.core.bodies.guard import GuardBody
from kit.core.bodies.memory import MemoryBody
from kit.core.bodies.speech import SpeechBody
from kit.core.bodies.turn import TurnBody
from kit.core.value import Value

INTERNAL: frozenset[str] = frozenset({"separator"})
"""Kinds that are for history alone: whoever follows a turn is not told of them."""

Body = Annotated[
    TurnBody | CallBody | SpeechBody | GuardBody | MemoryBody, Field(discriminator="kind")
]


class Event(Value):
    """A body, stamped by the turn's log."""

    seq: int
    """0, 1, 2 ... without gaps, within a turn."""
    at: float
    """Seconds since the turn began."""
    turn_id: str
    span_id: str
    parent_span_id: str | None = None
    body: Body

    @property
    def kind(self) -> str:
        return self.body.kind
