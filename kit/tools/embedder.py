"""What makes a vector of a text, so that memories are found by what they mean."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kit.core.documents.document import DIMENSION


class Embedder(Protocol):
    """Gives texts their places in a space in which what means the same is near."""

    @property
    def name(self) -> str:
        """Stands beside each of its vectors: those of another one are compared with none of its own."""
        ...

    async def embed(self, text: str) -> tuple[float, ...]:
        """Returns the vector of a text. Raises EmbedderError."""
        ...


@dataclass(frozen=True, slots=True)
class WordVectors:
    """The static word vectors that the stand-in routes by: no network, no key."""

    name: str = f"wordllama-{DIMENSION}"

    async def embed(self, text: str) -> tuple[float, ...]:
        """Returns the mean of the vectors of its words."""
        return await asyncio.to_thread(_embed, text)


def _embed(text: str) -> tuple[float, ...]:
    # Reads a table of 16 MB, and few kits need it.
    from kit.models.offline.similarity import embed

    return embed(text)


def cosine(first: Sequence[float], second: Sequence[float]) -> float:
    """Returns the cosine of the angle between two vectors; 0 where one of them is of zeros."""
    dot = sum(a * b for a, b in zip(first, second, strict=True))
    lengths = sum(a * a for a in first) * sum(b * b for b in second)
    if not lengths:
        return 0.0
    return dot / lengths**0.5
