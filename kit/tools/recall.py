"""What earlier tasks left, found again by its meaning and by its words."""

import logging
from collections.abc import Sequence

from kit.core.context import Principal
from kit.core.documents.document import Memory, Scope
from kit.core.errors import EmbedderError
from kit.stores.documents.protocol import MemoryStore
from kit.tools.embedder import Embedder

log = logging.getLogger("kit.memory")
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
