"""What crosses the Agent2Agent hop beside the text every A2A agent understands: whose request, what
it cost, what happened.

It travels as JSON under one metadata key, so that a peer that is no kit can ignore it. The trace is
one: its id and the caller's span go in a W3C `traceparent` header, and the events of the far side
come back with the answer.
"""

import hashlib
import re
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from kit.core.context import DynamicContext, InheritedContext
from kit.core.errors import UpstreamError
from kit.core.event import Event
from kit.core.outcome import AgentCall, Outcome
from kit.core.value import Value
from kit.runtime.context import TurnState
from kit.sinks.opentelemetry import trace_id

PRINCIPAL = "x-principal"
"""The header that says for whom a call is made: a server shows a task to nobody else."""
LONGEST = 1_000_000
"""Characters of one report, and of an answer."""
_TRACE_ID = re.compile("(?!0{32})[0-9a-f]{32}")
ASKER = "urn:subagent-kit:asker:1"
"""The extension of A2A by which any client says for whom it asks, named in each card (docs/bridges.md)."""
KEY = "subagent-kit"
"""Under which metadata of a message or an update the kit's own part stands."""


class Request(Value):
    """What the far side needs to run a call the way it would have run here."""

    call: AgentCall
    inherited: InheritedContext
    dynamic: DynamicContext
    caller: str
    """Path of the calling agent in its turn."""
    place: str
    """Round and position of the call, so that a model call has the same place on either side."""


class Report(Value):
    """What comes back: what happened since the last one, and at the end the outcome."""

    events: tuple[Event, ...] = ()
    outcome: Outcome | None = None


@dataclass(frozen=True)
class Caller:
    """The turn that a call belongs to, for a far side in the same process: the acts of its agent are that turn's."""

    turn: TurnState
    store: Callable[[Sequence[Event]], Awaitable[None]]
    """Takes what happened over there into the turn's log, and stores that. Raises StoreError."""


CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)
"""Set around a call; a far side in another process sees none, and holds the acts of its agent itself."""


def traceparent(turn_id: str, span_id: str) -> str:
    """The W3C header of a span of a turn; the trace id is the one the turn's spans are exported under."""
    span = hashlib.blake2b(f"{turn_id}/{span_id}".encode(), digest_size=8).hexdigest()
    return f"00-{trace_id(turn_id)}-{span}-01"


def trace_id_of(header: str) -> str:
    """The trace id of a `traceparent` header; a fresh one where there is none or it cannot be read."""
    parts = header.split("-")
    if len(parts) == 4 and _TRACE_ID.fullmatch(parts[1]):
        return parts[1]
    return uuid.uuid4().hex


def report_metadata(events: Sequence[Event], outcome: Outcome | None = None) -> dict[str, str]:
    """A report as metadata."""
    return {KEY: Report(events=tuple(events), outcome=outcome).model_dump_json()}


def read_report(text: str) -> Report:
    """The report in a peer's metadata. Raises UpstreamError for one that is none, or too long."""
    try:
        if len(text) <= LONGEST:
            return Report.model_validate_json(text)
    except ValueError as error:
        raise UpstreamError(f"the peer's report cannot be read: {str(error)[:200]}") from error
    raise UpstreamError(f"the peer's report is longer than {LONGEST:,} characters")
