"""Copies a finished turn to sinks: whoever else wants the trace. The store is not a sink; it always has it."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from kit.core.event import Event
from kit.core.record import Note, TurnRecord
from kit.core.trace import Trace, trace_of

log = logging.getLogger("kit.recorder")


class Sink(Protocol):
    """Receives each finished turn once, after the answer was given; must not block for long."""

    name: str

    def turn_ended(self, turn: TurnRecord, trace: Trace, events: Sequence[Event]) -> None:
        """Takes a copy of a turn."""
        ...

    def close(self) -> None:
        """Sends what waits, within a few seconds."""
        ...


@runtime_checkable
class AlertSink(Protocol):
    """A sink that also counts replies for another principal, each when it comes in; must not block."""

    def principal_mismatch(self, turn: TurnRecord) -> None:
        """Counts one."""
        ...


@dataclass
class Recorder:
    """Hands finished turns to every sink; a sink that raises is logged and counted, never felt by the turn."""

    sinks: tuple[Sink, ...] = ()
    failures: dict[str, int] = field(default_factory=dict[str, int])
    """Sink name -> turns and alerts that it did not take; /metrics tells."""
    keep_summary: Callable[[TurnRecord, Note], None] | None = None
    """Takes the summary that a turn has made of those before it; must not block."""

    def turn_ended(self, turn: TurnRecord, events: Sequence[Event]) -> None:
        """Copies a turn that ended to every sink."""
        # A paused turn goes on: who copies turns gets it once, whole.
        if turn.status == "paused":
            return
        trace = trace_of(events)
        for sink in self.sinks:
            try:
                sink.turn_ended(turn, trace, events)
            # A border: a sink is someone else's code.
            except Exception as error:
                self._count(sink)
                log.warning("sink %s did not take turn %s: %s", sink.name, turn.id, error)

    def principal_mismatch(self, turn: TurnRecord) -> None:
        """Tells the sinks that count them of a reply for another principal, in a turn that still runs."""
        for sink in self.sinks:
            if isinstance(sink, AlertSink):
                try:
                    sink.principal_mismatch(turn)
                except Exception as error:  # the same border
                    self._count(sink)
                    log.warning(
                        "sink %s did not take the alert of turn %s: %s", sink.name, turn.id, error
                    )

    def _count(self, sink: Sink) -> None:
        self.failures[sink.name] = self.failures.get(sink.name, 0) + 1

    def close(self) -> None:
        """Closes every sink."""
        for sink in self.sinks:
            try:
                sink.close()
            except Exception as error:  # the same border
                log.warning("sink %s did not close: %s", sink.name, error)
