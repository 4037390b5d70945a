"""What agents are told of the conversation: context carried over, fields distilled, old turns summed up."""

from typing import Literal

from kit.core.value import Value


class ContextCarried(Value):
    """The helper model was asked for the prior_context of agents the conversation switched to."""

    kind: Literal["carried"] = "carried"
    agents: tuple[str, ...]
    text: str | None
    """None when it had nothing, failed or took too long; the agents were called without."""


class Distillation(Value):
    """Fields of a hand-off were filled from the conversation; the values are in the event that starts the agent."""

    kind: Literal["distilled"] = "distilled"
    agent: str
    by_rule: tuple[str, ...]
    by_model: tuple[str, ...]
    """Those the helper model found something for."""
    before: int
    """Estimated tokens of the conversation."""
    after: int
    """Estimated tokens of the fields."""


class Compacted(Value):
    """Old turns were summed up, or that was tried."""

    kind: Literal["compacted"] = "compacted"
    done: bool
    turns: int
    """How many turns the new summary takes in, the old summary aside."""
    kept: int
    """How many stay whole."""
    before: int
    """Estimated tokens of what the summary stands for."""
    after: int
    """Estimated tokens of the summary."""


MemoryBody = ContextCarried | Distillation | Compacted
