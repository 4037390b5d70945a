"""What earlier tasks left, and summaries of sessions: kept, and found again by their meaning and by their words."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kit.core.context import Principal
from kit.core.documents.document import Memory, Scope
from kit.core.errors import EmbedderError, MemoryLockError, StoreError
from kit.core.record import Note, TurnRecord
from kit.stores.documents.protocol import MemoryStore
from kit.tools.embedder import Embedder
from kit.tools.task_memory import Task, TaskMemory

log = logging.getLogger("kit.memory")
SUMMARY = "summary"
"""What the task and the key are called under which the summary of a session is kept."""
CLOSING = 5.0
"""Seconds in which summaries that are being written may still be, when a kit closes."""
SMOOTHING = 60
"""By how much the first places of a list weigh less than they would alone (Cormack, Clarke and Büttcher 2009)."""


async def find_memories(
    memories: MemoryStore,
    embedder: Embedder,
    principal: Principal,
    scope: Scope,
    text: str,
    top_k: int = 5,
    session_id: str = "",
) -> list[Memory]:
    """Returns the memories of a scope, and for a session of that session, that are nearest to a text.

    Those nearest in meaning and those with its words are ranked each on their own; what stands high in both
    lists comes first. Raises StoreError.
    """
    by_words = await memories.search(principal, scope, text, top_k, session_id)
    try:
        vector = await embedder.embed(text)
    except EmbedderError as error:
        log.warning("memories are searched by their words alone: %s", error)
        return by_words
    by_meaning = await memories.nearest(principal, scope, vector, embedder.name, top_k, session_id)
    return _merge(by_meaning, by_words)[:top_k]


def _merge(*rankings: Sequence[Memory]) -> list[Memory]:
    """Returns what stands in any of these lists, the sum of whose reciprocal ranks is greatest first."""
    scores: dict[str, float] = {}
    memories: dict[str, Memory] = {}
    for ranking in rankings:
        for rank, memory in enumerate(ranking, 1):
            memories[memory.key] = memory
            scores[memory.key] = scores.get(memory.key, 0.0) + 1 / (SMOOTHING + rank)
    best_first = sorted(scores, key=lambda key: -scores[key])
    return [memories[key] for key in best_first]


@dataclass(frozen=True, slots=True)
class SessionSummaries:
    """Keeps the newest summary of each session as a memory of that session; no turn waits for it."""

    open_memory: Callable[[], TaskMemory]
    source: str
    """The model that sums up."""
    _writes: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def keep(self, turn: TurnRecord, note: Note) -> None:
        """Begins to write the summary that a turn has made of those before it."""
        fields = note.fields("text")
        if fields is None:
            return
        write = asyncio.create_task(self._write(turn, fields["text"]))
        self._writes.add(write)
        write.add_done_callback(self._writes.discard)

    async def _write(self, turn: TurnRecord, text: str) -> None:
        task = Task(turn.principal, turn.session_id, SUMMARY, self.source, words="Summary:")
        try:
            await self.open_memory().keep(task, SUMMARY, text, "string")
        except (MemoryLockError, StoreError) as error:
            # The session has its summary all the same; it is only not found by a search.
            log.warning(
                "the summary of session %s is not kept as a memory: %s", turn.session_id, error
            )

    async def drain(self) -> None:
        """Waits for what is being written, a few seconds at most."""
        if self._writes:
            await asyncio.wait(self._writes, timeout=CLOSING)


async def summary_of(
    memories: MemoryStore, embedder: Embedder, principal: Principal, session_id: str, text: str
) -> str | None:
    """Returns a session's summary where it is among its five memories nearest to a text. Raises StoreError."""
    nearest = await find_memories(memories, embedder, principal, "session", text, 5, session_id)
    for memory in nearest:
        if memory.task_id == SUMMARY:
            return str(memory.value)
    return None
