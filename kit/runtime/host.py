"""What a turn needs of whoever runs it, and how it raises the alarm there."""

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from kit.core.errors import StoreError
from kit.core.event import Event
from kit.core.record import Measures, TurnRecord
from kit.metrics.alert import log_mismatch
from kit.runtime.pattern import Pattern
from kit.runtime.recording.cassette import Cassette
from kit.runtime.team import Team
from kit.sinks.recorder import Recorder
from kit.stores.protocol import Store


class Host(Protocol):
    """What a turn needs of the kit that runs it."""

    @property
    def team(self) -> Team: ...
    @property
    def store(self) -> Store: ...
    @property
    def recorder(self) -> Recorder: ...
    @property
    def cassette(self) -> Cassette | None: ...
    @property
    def pattern(self) -> Pattern: ...
    @property
    def today(self) -> str:
        """The date prompts carry."""
        ...


def alarm(record: TurnRecord, kit: Host) -> Callable[[Event], None]:
    """Returns what tells log, store and sinks of a reply for another principal: a process that dies
    then leaves it behind.

    It holds nothing of the running turn, which would then live until the garbage collector came.
    """

    def ring(event: Event) -> None:
        nonlocal record
        record = record.replace(
            measures=Measures(mismatches=(*record.measures.mismatches, event.at))
        )
        log_mismatch(record)
        # a busy store gets it with the end of the turn
        with suppress(StoreError):
            kit.store.begin_turn(record, wait=False)
        kit.recorder.principal_mismatch(record)

    return ring
