"""Calls of models, agents and tools: what they were given, what they gave back and what they cost."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from kit.core.bodies import earlier
from kit.core.context import Principal
from kit.core.limits import Data
from kit.core.outcome import Axis, ErrorClass, Outcome, Reason, Usage
from kit.core.value import Value

PREFIX = "…"
"""What a system message begins with in an event, in the place of the prompt that the store keeps
once for its cohort."""

Purpose = Literal["decide", "compose", "work", "job"]


class RequestCall(Value):
    """A call of a tool, as a model made it."""

    name: str
    args: dict[str, Any] = {}

    def __str__(self) -> str:
        return f"{self.name}({self.args})"


StoredCall = Annotated[RequestCall, BeforeValidator(earlier.call_fields)]


class RequestMessage(Value):
    """One message of a request; `role` is system, human, ai or tool."""

    role: str
    text: str
    calls: tuple[StoredCall, ...] = ()

    def __str__(self) -> str:
        line = f"{self.role}: {self.text}"
        if self.calls:
            return text_and_calls(line, self.calls)
        return line


StoredMessage = Annotated[RequestMessage, BeforeValidator(earlier.message_fields)]


def text_and_calls(text: str, calls: tuple[RequestCall, ...]) -> str:
    """Returns what a model said as a person reads it in a trace: its text, then a line for each call."""
    return "".join([text, *(f"\n→ {call}" for call in calls)])


class CallFailure(Value):
    """How a call of a model or a tool failed; the words are raw, for the trace alone."""

    kind: Reason
    type: str = ""
    """The class of the exception that was raised; empty where a tool said that it failed."""
    text: str = ""
    status: int | None = None
    """Of HTTP, where an endpoint answered."""
    message: str = ""
    """What the endpoint said."""


class ModelStarted(Value):
    kind: Literal["model_started"] = "model_started"
    agent: str
    model: str
    purpose: Purpose
    input: tuple[StoredMessage, ...] = ()
    """The messages this agent has not shown a model before in the turn."""
    before: int = 0
    """Messages between the system message and these: in an agent's first call lines of the
    conversation, which the store has beside the turns; in a later one what its previous call was
    sent, and the reply to it."""
    system: str = ""
    """The system message, where the agent's previous call had another. PREFIX stands for the prompt
    of its cohort; alone, for that with the same lines after it as in the turn's first call."""
    instead_of: str | None = None
    """The model that failed, when this one is the card's fallback (decisions 10)."""


class ModelEnded(Value):
    kind: Literal["model_ended"] = "model_ended"
    agent: str
    model: str
    text: str = ""
    calls: tuple[StoredCall, ...] = ()
    usage: Usage = Usage()
    ttft: float | None = None
    """Seconds from the call to the first token."""
    response_id: str | None = None
    """The provider's name for it, while a chain may be continued from there."""
    finish_reason: str | None = None
    """Why it ended, in the provider's word; `cut_off` for a stream that ended without one."""
    error: str | None = None
    """Raw reason, for the trace alone."""
    failure: CallFailure | None = None
    """Set where there is an error."""
    error_class: ErrorClass | None = None
    """Set where infrastructure lost the call of a real model."""


class ModelPause(Value):
    """A call of a model waited: for its key to let it through, or, after an attempt that failed, before the next."""

    kind: Literal["model_pause"] = "model_pause"
    agent: str
    model: str
    seconds: float
    reason: str
    """How the attempt failed, such as HTTP 429; `limits of the key` before the first."""


class AgentStarted(Value):
    kind: Literal["agent_started"] = "agent_started"
    agent: str
    call_id: str
    query: str
    prior_context: str | None = None
    fields: dict[str, Any] = {}
    """What crossed the hand-off; personal fields redacted."""
    limited: tuple[str, ...] = ()
    """What the hand-off cut or left out to keep the card's limits."""
    principal: Principal | None = None
    """For whom it works: inherited from the turn."""
    cohort: str = ""
    """Which prompt prefix it speaks with; empty for an agent that has no prompt here."""
    pictures: tuple[str, ...] = ()
    """SHA-256 of the message's pictures that it got."""
    place: str = ""
    """Its round and position among what its caller asked for, such as `1.2`."""


class AgentEnded(Value):
    kind: Literal["agent_ended"] = "agent_ended"
    agent: str
    outcome: Outcome


class AgentError(Value):
    """agent.error_emit: no PII, no enricher id. Final where the orchestrator's call has no answer for it."""

    kind: Literal["agent_error"] = "agent_error"
    agent: str
    axis: Axis
    is_final: bool


class AnswerChosen(Value):
    """How a call came to its answer where several agents worked on it. What they spent is the call's own usage."""

    kind: Literal["chosen"] = "chosen"
    agent: str
    """Who was asked."""
    call_id: str
    policy: Literal["race", "ensemble", "pipeline"]
    members: tuple[str, ...]
    """Those that were put to work."""
    winner: str | None
    """Whose answer it is; None when there is none."""
    because: str


class Hop(Value):
    """A call of an agent that is elsewhere has ended: what crossed, what that took, and what was spent over there."""

    kind: Literal["hop"] = "hop"
    agent: str
    messages: int
    """Both ways."""
    bytes_out: int
    """Of the messages as JSON, without the heads of HTTP."""
    bytes_in: int
    seconds: float | None = None
    """What the call took beside the work of the peer; None where that is not known."""
    writing: float = 0.0
    """What it takes, of these seconds, to write the messages as JSON once; 0 where time is virtual."""
    peer_seconds: float | None = None
    """The peer's own work, by its own clock; None for one that was given up, or does not say."""
    usage: Usage | None = None
    """What the peer spent, as far as it was heard; None for one that does not say."""


class ToolStarted(Value):
    kind: Literal["tool_started"] = "tool_started"
    agent: str
    tool: str
    call_id: str
    args: Data = {}
    watched_since: str | None = None
    """The day on which the tool was put on the card, for its first thirty days there."""


class ToolEnded(Value):
    kind: Literal["tool_ended"] = "tool_ended"
    agent: str
    tool: str
    call_id: str
    result: str = ""
    error: str | None = None
    """Raw reason, for the trace alone."""
    failure: CallFailure | None = None
    """Set where there is an error."""
    was_called: bool = True
    """False where the kit refused the call itself, and nothing was asked of the tool."""
    caveat: str | None = None
    """The reservation that an answer from it must carry."""


class ToolRetry(Value):
    """An attempt of a tool call failed, and another one follows: the tool says that this does no harm."""

    kind: Literal["tool_retry"] = "tool_retry"
    agent: str
    tool: str
    call_id: str
    attempt: int
    """The number of the one that failed, from 1."""
    error: str
    """Raw reason, for the trace alone."""
    pause_ms: int
    """How long the tool is left alone."""


class Script(Value):
    """A script that a model wrote was run in the sandbox, or refused."""

    kind: Literal["script"] = "script"
    agent: str
    sha256: str
    """Of its text in UTF-8."""
    boundary: Literal["bubblewrap", "landlock"] | None = None
    """What it was locked in by; None where nothing holds on this machine."""
    exit: int | None = None
    """Its exit code; None where it was stopped or did not run."""
    output_bytes: int = 0
    """How many of what it printed were read."""
    reason: Literal["failed", "timeout", "oversized_output", "unavailable"] | None = None


class Envelope(Value):
    """What a context-service envelope said about itself: recorded, not acted on."""

    kind: Literal["envelope"] = "envelope"
    agent: str
    domain_type: str
    enricher_id: str
    status: str
    principal_verified: bool
    version: str = ""
    version_ok: bool = True
    cached: bool = False
    principal: Principal | None = None
    """For whom it was asked; whose it was, where that is somebody else, is never kept."""


CallBody = (
    ModelStarted
    | Annotated[ModelEnded, BeforeValidator(earlier.model_end_fields)]
    | ModelPause
    | AgentStarted
    | AgentEnded
    | AgentError
    | AnswerChosen
    | Hop
    | ToolStarted
    | Annotated[ToolEnded, BeforeValidator(earlier.tool_end_fields)]
    | ToolRetry
    | Script
    | Envelope
)
