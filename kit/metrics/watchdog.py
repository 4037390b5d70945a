"""A watchdog for the event loop: when the loop is silent for too long, it notes for how long, and what held it.

A loop that one callback holds answers nobody: no turn moves, no page is drawn, no deadline fires. From
inside nothing of that can be seen, so a thread of its own asks the loop, off the path of every turn.
"""

import asyncio
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Sequence
from types import FrameType

from kit.core.documents.document import AgentEvent
from kit.core.value import Value
from kit.stores.documents.protocol import EventFilter, EventStore

SILENT = "loop.silent"
"""The type of the event in the store."""
LONGEST = 0.25
"""Seconds that the loop may be silent."""
PAUSE = 0.1
"""Seconds between an answer of the loop and the next question. A silence may have begun that much
earlier than it was noticed, so what is noted is at least that long."""
FRAMES = 30
"""Frames of the stack that are kept, the innermost ones."""


class Silence(Value):
    """A time in which the loop ran one callback and nothing else."""

    at: float
    """When it was noticed, in seconds since the epoch."""
    seconds: float
    """How long it lasted, at least."""
    stack: tuple[str, ...]
    """What held the loop once it had been silent too long: `file:line function`, the innermost frame last."""


class Watchdog:
    """Watches one loop from a thread. `on_silence` is called in that thread, once the loop answers again."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_silence: Callable[[Silence], None],
        longest: float = LONGEST,
    ):
        self._loop = loop
        self._on_silence = on_silence
        self._longest = longest
        self._loop_thread = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="kit watchdog", daemon=True)

    def start(self) -> None:
        """Begins to watch. Call it on the loop's own thread."""
        self._loop_thread = threading.get_ident()
        self._thread.start()

    def stop(self) -> None:
        """Ends the watch; the loop may be closed after that."""
        self._stopping.set()
        # It may be waiting for the answer of a loop that never comes.
        self._thread.join(timeout=5)

    def _watch(self) -> None:
        while not self._stopping.wait(PAUSE):
            answer = threading.Event()
            began = time.monotonic()
            try:
                self._loop.call_soon_threadsafe(answer.set)
            # The loop is closed.
            except RuntimeError:
                return
            if answer.wait(self._longest):
                continue
            noticed = time.time()
            # Python offers another thread's stack under this name alone.
            frame = sys._current_frames().get(self._loop_thread)  # pyright: ignore[reportPrivateUsage]
            stack = _lines(frame)
            while not answer.wait(PAUSE):
                if self._stopping.is_set():
                    return
            # A loop that waits for the system is not held by code: the machine was too busy to wake it.
            if frame is not None and not _waits(stack):
                seconds = time.monotonic() - began
                self._on_silence(Silence(at=noticed, seconds=round(seconds, 3), stack=stack))


async def note_silence(events: EventStore, tenant_id: str, silence: Silence) -> None:
    """Keeps a silence among the events of a tenant. Raises StoreError."""
    event = AgentEvent(
        event_id=uuid.uuid4().hex,
        tenant_id=tenant_id,
        event_type=SILENT,
        ts=silence.at,
        duration_ms=round(1000 * silence.seconds),
        payload={"stack": list(silence.stack)},
    )
    await events.append(event)


async def silences(events: EventStore, tenant_id: str, since: float = 0.0) -> list[Silence]:
    """Returns what was noted of the loop since a moment, the oldest first. Raises StoreError."""
    by = EventFilter(tenant_id=tenant_id, event_type=SILENT, since=since)
    return [_silence_of(event) for event in await events.query(by)]


def _silence_of(event: AgentEvent) -> Silence:
    seconds = (event.duration_ms or 0) / 1000
    return Silence.model_validate({"at": event.ts, "seconds": seconds, **event.payload})


def _lines(frame: FrameType | None) -> tuple[str, ...]:
    """Returns a stack as lines without any value of a variable: they may be anybody's words."""
    if frame is None:
        return ()
    summary = traceback.extract_stack(frame)[-FRAMES:]
    texts: list[str] = []
    for entry in summary:
        texts.append(f"{entry.filename}:{entry.lineno} {entry.name}")
    return tuple(texts)


def _waits(stack: Sequence[str]) -> bool:
    return bool(stack) and stack[-1].endswith(" select")
