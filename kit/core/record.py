"""What the store keeps of a turn beside its events: the conversation as text, the rollup row, feedback."""

from typing import Literal

from kit.core.value import Value

TurnStatus = Literal["running", "ok", "failed", "cancelled", "deadline", "interrupted"]


class Message(Value):
    """One line of narration. `agent` says whose history it belongs to: "" is the orchestrator's (what the user saw)."""

    turn_id: str
    role: Literal["user", "assistant"]
    text: str
    agent: str = ""


class TurnRecord(Value):
    """The rollup of one turn: what lists and metrics read instead of raw events."""

    id: str
    session_id: str
    tenant_id: str
    user_id: str
    message: str
    pattern: str
    model: str = ""
    started_at: float
    """Wall clock, seconds since the epoch."""
    seconds: float | None = None
    status: TurnStatus = "running"
    text: str = ""
    invoked: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    intent_count: int = 0
    cap: int = 0
    cap_behavior: str = "within"
    ttft: float | None = None
    """Seconds to the first text the user could read."""
    input_tokens: int = 0
    output_tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    cost: float | None = None


class Feedback(Value):
    """A person's thumb on a turn."""

    turn_id: str
    score: Literal[0, 1]
    note: str = ""
