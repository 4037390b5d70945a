"""A model with its tools bound, and the voice of one agent: which of its models speaks now, and what happens when that fails."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import Runnable

from kit.core.model import ModelSpec


@dataclass(frozen=True, slots=True)
class BoundModel:
    """A model with its tools already bound, and what is known about it."""

    spec: ModelSpec
    runnable: Runnable[Any, Any]
    private: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Tool name -> arguments that are personal: redacted in the trace."""
    wants_place: bool = False
    """Whether its stream takes the call's place in the turn: a simulated model draws by it."""
    tools: Sequence[Mapping[str, Any]] = ()
    """The schemas that were bound, as a recording names them."""


@dataclass(slots=True)
class Voice:
    """The model of one invocation, or of an orchestrator for one turn; `call_with_fallback` speaks with it.

    Once the fallback has taken over it stays; it gets no second chance of its own.
    """

    model: BoundModel
    fallback: BoundModel | None = None
    patience: float | None = None
    """Seconds the model has for one call while the fallback still stands behind it."""
    limit: float | None = None
    """Seconds that any one call may take, the fallback's too; None: as long as whoever asks has."""
    may_fall_back: bool = True
    """False once a foreign principal's data turned up: no other model is asked after that."""
    instead_of: str | None = None
    """Key of the model that failed before this one."""
