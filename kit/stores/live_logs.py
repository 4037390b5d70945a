"""The logs of running turns, kept as they grow: a process that is killed loses at most the last second of them."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from weakref import WeakMethod

from kit.core.errors import StoreError
from kit.core.event import Event
from kit.stores.rows import log_of

log = logging.getLogger("kit.store")
Rows = Sequence[tuple[bytes, str]]
EVERY = 0.5
"""Seconds between two looks. A turn met for the first time is younger than that and not written:
short ones cost nothing."""


class LiveLogs:
    """A thread that gives the logs of running turns that have grown to `keep`, (JSON, id) each, and then calls `also`.

    It ends with `close()`, or with the object whose methods these are. `logs` has each running turn's events by its id.
    """

    def __init__(
        self,
        logs: Mapping[str, Sequence[Event]],
        keep: Callable[[Rows], int],
        also: Callable[[], None],
    ):
        self._logs = logs
        self._keep = WeakMethod(keep)
        self._also = WeakMethod(also)
        self._counts: dict[str, int] = {}
        """How many events of a turn are kept already."""
        self._wake = threading.Event()
        self._closed = False
        threading.Thread(target=self._run, name="kit live logs", daemon=True).start()

    def close(self) -> None:
        """Ends the thread; a second call does nothing."""
        self._closed = True
        self._wake.set()

    def hurry(self) -> None:
        """Has `also` called at once instead of at the next look."""
        self._wake.set()

    def _run(self) -> None:
        due = time.monotonic() + EVERY
        last_error = ""
        while True:
            self._wake.wait(max(0.0, due - time.monotonic()))
            self._wake.clear()
            late = time.monotonic() >= due
            if self._closed or (late and not self._keep_all()):
                return
            if late:
                due = due + EVERY
            also = self._also()
            try:
                if also is not None:
                    also()
                last_error = ""
            except StoreError as error:  # it is tried again in a second
                # A database may be gone for hours, and one that was closed meanwhile is no fault.
                if str(error) != last_error and not self._closed:
                    log.warning("%s", error)
                last_error = str(error)

    def _keep_all(self) -> bool:
        keep = self._keep()
        if keep is None:
            return False
        counts: dict[str, int] = {}
        grown: list[tuple[bytes, str]] = []
        for turn_id, turn_log in dict(self._logs).items():
            known = self._counts.get(turn_id)
            events = list(turn_log)
            counts[turn_id] = 0 if known is None else len(events)
            if counts[turn_id] > (known or 0):
                grown.append((log_of(events), turn_id))
        self._counts = counts
        try:
            if grown:
                keep(grown)
        except (
            StoreError
        ) as error:  # the next event has it written again, and so has the end of the turn
            log.warning("%d turns: their latest events are not kept yet: %s", len(grown), error)
        return True
