"""Exact search for the nearest vectors: one matrix for each scope of a tenant, kept until something
in it is written."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Select, func, select

from kit.stores.documents.tables import MEMORY

Read = Callable[[Select[*tuple[Any, ...]]], Sequence[Any]]
"""Gives the rows of a query, as `Database.read` does."""


class Owner(NamedTuple):
    """What a search never leaves. User and session are empty where the scope is wider."""

    tenant_id: str
    scope: str
    user_id: str
    session_id: str

    def conditions(self) -> list[ColumnElement[bool]]:
        """Returns the conditions of the owner's memories."""
        return [MEMORY.c[name] == value for name, value in self._asdict().items()]


class Space(NamedTuple):
    """The vectors that a search compares: an owner's, of one embedder."""

    owner: Owner
    embedder: str


MATRICES = 64
"""Spaces whose matrices are kept; the one that was longest not asked for goes."""


@dataclass(frozen=True, slots=True)
class _Matrix:
    state: Any
    """The newest number of a row and their count. A number is never given twice, so no two contents share both."""
    seqs: NDArray[np.int64]
    ends: NDArray[np.float64]
    rows: NDArray[np.float32]
    """Each of length 1."""


@dataclass(frozen=True, slots=True)
class VectorSearch:
    """The matrices of one store."""

    matrices: OrderedDict[Space, _Matrix] = field(default_factory=OrderedDict[Space, _Matrix])

    def nearest(
        self, read: Read, space: Space, vector: Sequence[float], top_k: int, now: float
    ) -> list[int]:
        """Returns the rows whose vectors have the smallest angle to this one, nearest first;
        expired ones are left out."""
        matrix = self._matrix(read, space, len(vector))
        # row by row: a matrix product would wake other threads, which takes longer than the work
        scores = np.vecdot(matrix.rows, _unit(np.asarray([vector], np.float32))[0])
        scores[matrix.ends <= now] = -np.inf
        count = min(top_k, int(np.count_nonzero(scores > -np.inf)))
        if count <= 0:
            return []
        best = np.argpartition(-scores, count - 1)[:count]
        return [int(seq) for seq in matrix.seqs[best[np.argsort(-scores[best], kind="stable")]]]

    def _matrix(self, read: Read, space: Space, dimension: int) -> _Matrix:
        """Returns the matrix of a space, read again where something was written since, by whatever process."""
        conditions = (
            *space.owner.conditions(),
            MEMORY.c.embedder == space.embedder,
            MEMORY.c.embedding.is_not(None),
        )
        (state,) = read(select(func.max(MEMORY.c.seq), func.count()).where(*conditions))
        matrix = self.matrices.get(space)
        if matrix is None or matrix.state != state:
            never = func.coalesce(MEMORY.c.ttl_at, np.inf)
            # An embedder whose vectors have another length today is another one.
            is_of_embedder = func.length(MEMORY.c.embedding) == 4 * dimension
            rows = read(
                select(MEMORY.c.seq, never, MEMORY.c.embedding)
                .where(*conditions, is_of_embedder)
                .order_by(MEMORY.c.seq)
            )
            vectors = np.frombuffer(b"".join(row[2] for row in rows), np.float32)
            matrix = _Matrix(
                state=state,
                seqs=np.array([row[0] for row in rows], np.int64),
                ends=np.array([row[1] for row in rows], np.float64),
                rows=_unit(vectors.reshape(len(rows), dimension)),
            )
        self.matrices[space] = matrix
        self.matrices.move_to_end(space)
        if len(self.matrices) > MATRICES:
            self.matrices.popitem(last=False)
        return matrix


def as_blob(vector: Sequence[float] | None) -> bytes | None:
    """Returns the bytes a vector is kept as."""
    if vector is None:
        return None
    return np.asarray(vector, np.float32).tobytes()


def of_blob(blob: bytes | None) -> tuple[float, ...] | None:
    """Returns the vector of such bytes."""
    if blob is None:
        return None
    return tuple(np.frombuffer(blob, np.float32).tolist())


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, np.float32(1e-30), dtype=np.float32)
