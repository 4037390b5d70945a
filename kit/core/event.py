"""Everything that happens in a turn, as one tagged union; app, notebooks, tests and traces read the same stream.

Emitters send a Body. Only the turn's log stamps it into an Event, so nobody else handles numbers, clocks or spans.
A body whose kind ends in `_started` opens the span it is stamped with; the matching `_ended` (and `completed`) closes it.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from kit.core.context import Principal
from kit.core.limits import Data
from kit.core.outcome import Axis, ErrorClass, Outcome, RoutingDecision, Usage
from kit.core.picture import PictureRef
from kit.core.value import Value

INTERNAL: frozenset[str] = frozenset({"separator"})
"""Kinds that are for history alone: whoever follows a turn is not told of them."""

PREFIX = "…"
"""What a system message begins with in an event, in the place of the prompt that the store keeps once for its cohort."""
Purpose = Literal["decide", "compose", "work", "job"]
Acknowledgement = Literal["composed", "recomposed", "appended", "rescued"]
"""How an answer came to own up to what failed: at once, the second time, by a sentence added, made of the answers in hand."""
GuardAction = Literal["asked_again", "merged", "short", "rerouted", "dropped", "reworded", "mended"]
"""What a guard did. `short`: intents are still without a call after the retry."""


class Thinking(Value):
    """The very first event of a turn."""

    kind: Literal["thinking"] = "thinking"


class TurnStarted(Value):
    kind: Literal["turn_started"] = "turn_started"
    message: str
    """With a mark for each picture in front of the words."""
    session_id: str
    principal: Principal
    pattern: str
    started_at: float
    """Wall clock, seconds since the epoch; every other time is seconds since this moment."""
    deck: str = ""
    cohort: str = ""
    """Which prompt prefix the orchestrator speaks with."""
    cap: int = 0
    model: str = ""
    faults: tuple[str, ...] = ()
    """What this turn was made to run into on purpose, as `agent=kind`; empty for every turn of a person who asked for none."""
    pictures: tuple[PictureRef, ...] = ()


class ResponseId(Value):
    """What an answer is called: its provider's name for it, or `ft_...` for the support agent's, which has none."""

    kind: Literal["response_id"] = "response_id"
    agent: str
    response_id: str


class Text(Value):
    """Text for the user. `lead` is said before it is known whether sub-agents are called: the preamble, or the whole answer."""

    kind: Literal["text"] = "text"
    channel: Literal["lead", "answer"]
    text: str
    synthetic: bool = False
    """The card's fixed line, because the model said nothing."""


class TextReplaced(Value):
    """Every text of this channel since `from_seq` no longer stands; `text` stands instead."""

    kind: Literal["text_replaced"] = "text_replaced"
    channel: Literal["lead", "answer"] = "answer"
    from_seq: int
    text: str


class Reasoning(Value):
    """What a model says of its thinking, a stretch at a time; no part of any answer."""

    kind: Literal["reasoning"] = "reasoning"
    agent: str
    text: str


class ModelStarted(Value):
    kind: Literal["model_started"] = "model_started"
    agent: str
    model: str
    purpose: Purpose
    input: tuple[str, ...] = ()
    """The messages this agent has not shown a model before in the turn, one `role: text` line each."""
    before: int = 0
    """Messages between the system message and these: in an agent's first call lines of the conversation, which the store has
    beside the turns; in a later one what its previous call was sent, and the reply to it."""
    system: str = ""
    """The system message, where the agent's previous call had another. PREFIX stands for the prompt of its cohort; alone, for
    that with the same lines after it as in the turn's first call."""
    instead_of: str | None = None
    """The model that failed, when this one is the card's fallback (decisions 10)."""


class ModelEnded(Value):
    kind: Literal["model_ended"] = "model_ended"
    agent: str
    model: str
    text: str = ""
    calls: tuple[str, ...] = ()
    usage: Usage = Usage()
    ttft: float | None = None
    """Seconds from the call to the first token."""
    response_id: str | None = None
    """The provider's name for it, while a chain may be continued from there."""
    finish_reason: str | None = None
    """Why it ended, in the provider's word; `cut_off` for a stream that ended without one."""
    error: str | None = None
    error_class: ErrorClass | None = None
    """Set where infrastructure lost the call of a real model."""


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


class Status(Value):
    """A sub-agent's progress as an identifier of the vocabulary; the log writes `unknown` in the place of any other."""

    kind: Literal["status"] = "status"
    agent: str
    status: str


class StatusLine(Value):
    """The same progress in the assistant's words."""

    kind: Literal["status_line"] = "status_line"
    agent: str
    """Empty for a line about several agents at once."""
    text: str


class Component(Value):
    kind: Literal["component"] = "component"
    agent: str
    type: str
    payload: Data


class CallDropped(Value):
    """A sub-agent call that never ran."""

    kind: Literal["call_dropped"] = "call_dropped"
    agent: str
    call_id: str
    reason: Literal["over_cap", "guard"]
    guard: str | None = None


class AccessDenied(Value):
    """An agent reached for what its contract does not give it, or so that nobody can read it; it never ran."""

    kind: Literal["refused"] = "refused"
    agent: str
    """Who reached."""
    what: Literal["tool", "agent"]
    name: str
    because: Literal["not_on_card", "recursion", "depth", "bad_arguments"]


class GuardActed(Value):
    """A guard acted on a decision; never told to the user (decisions 7)."""

    kind: Literal["guarded"] = "guarded"
    guard: str
    agent: str
    reason: str
    action: GuardAction
    call_id: str = ""
    """The call acted on; empty when the whole decision was."""


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


class AgentError(Value):
    """agent.error_emit: no PII, no enricher id. Final where the orchestrator's call has no answer for it."""

    kind: Literal["agent_error"] = "agent_error"
    agent: str
    axis: Axis
    is_final: bool


class Acknowledged(Value):
    """How a composition came to own up to what failed (decisions 8)."""

    kind: Literal["acknowledged"] = "acknowledged"
    path: Acknowledgement
    owed: tuple[str, ...]


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


class Separator(Value):
    """Here one agent's words end and another's begin: in history each are a message of their own.

    A pattern emits it that shows sub-agents' own words; a composed answer has no parts. Never for the client.
    """

    kind: Literal["separator"] = "separator"
    agent: str
    """Whose words end."""


class TurnUsage(Value):
    """Total usage of the turn."""

    kind: Literal["usage"] = "usage"
    usage: Usage


class Routing(Value):
    kind: Literal["routing"] = "routing"
    decision: RoutingDecision


class Fork(Value):
    """This turn is another one up to a span, and goes on from there in its own way."""

    kind: Literal["fork"] = "fork"
    turn_id: str
    """The other turn."""
    at: str
    """Its span that is called anew: what had begun before that one ended is played."""
    model: str | None = None
    pattern: str | None = None
    prompt: str | None = None
    """The agent that got another prompt; of these three, those that are not None are what is other."""


class Replay(Value):
    """This span was played from a recording: nothing was called."""

    kind: Literal["replay"] = "replay"


class ApprovalAsked(Value):
    """A tool waits for the user's yes: once all else has ended, the turn pauses."""

    kind: Literal["approval_asked"] = "approval_asked"
    agent: str
    tool: str
    key: str
    """Names the call: its tool and its arguments."""
    question: str


class ActStarted(Value):
    """A tool that must not run twice runs from here on; stored before it does."""

    kind: Literal["act_started"] = "act_started"
    agent: str
    tool: str
    key: str


class Act(Value):
    """What became of a call that must not be made twice."""

    text: str | None = None
    """What the tool gave back; None where its end is not known."""
    error: str | None = None


class Resumed(Value):
    """This turn had paused, or its process had died, and goes on: what had ended is played."""

    kind: Literal["resumed"] = "resumed"
    turn_id: str
    answers: dict[str, bool] = {}
    """The user's yes or no, by the key of the call."""
    acts: dict[str, Act] = {}
    """What was done before, by the same key."""


class PlanTaken(Value):
    """This turn works on a stored plan: a new one, or one that it takes up."""

    kind: Literal["plan_taken"] = "plan_taken"
    plan_id: str


class Completed(Value):
    """The last event of a turn, whatever happened."""

    kind: Literal["completed"] = "completed"
    status: Literal["ok", "failed", "cancelled", "deadline", "paused"]
    text: str
    error: str | None = None
    """Raw reason, for the trace alone."""
    saved: bool = True
    """Whether the store has the turn."""


Body = Annotated[
    Thinking
    | PlanTaken
    | TurnStarted
    | ResponseId
    | Text
    | TextReplaced
    | Reasoning
    | ModelStarted
    | ModelEnded
    | AgentStarted
    | AgentEnded
    | Hop
    | ToolStarted
    | ToolEnded
    | ToolRetry
    | Script
    | Status
    | StatusLine
    | Component
    | CallDropped
    | AccessDenied
    | GuardActed
    | Envelope
    | AgentError
    | Acknowledged
    | AnswerChosen
    | ContextCarried
    | Distillation
    | Compacted
    | Separator
    | TurnUsage
    | Routing
    | Fork
    | Replay
    | ApprovalAsked
    | ActStarted
    | Resumed
    | Completed,
    Field(discriminator="kind"),
]


class Event(Value):
    """A body, stamped by the turn's log."""

    seq: int
    """0, 1, 2 ... without gaps, within a turn."""
    at: float
    """Seconds since the turn began."""
    turn_id: str
    span_id: str
    parent_span_id: str | None = None
    body: Body

    @property
    def kind(self) -> str:
        return self.body.kind
