"""What the store keeps of a turn beside its events: the conversation as text, the rollup row, feedback."""

import json
from typing import Any, Literal

from pydantic import Field

from kit.core.context import Principal, Recollection, Session, SessionKey
from kit.core.display.turn_parts import NO_PARTS, TurnParts, TurnStatus
from kit.core.outcome import STOPPED, Axis, Reason, Usage
from kit.core.schema.json_value import is_object
from kit.core.timeout import Cause
from kit.core.value import Value

UNANSWERED = "(This question was not answered.)"
"""Stands for the answer in the history of an agent that was asked and gave none (decisions 27)."""
LINES = 40
"""Messages of one reader that are read of a session, where nothing else is said."""


class Message(Value):
    """One line of narration. `agent` says whose history it belongs to: "" is the orchestrator's (what the user saw)."""

    turn_id: str
    role: Literal["user", "assistant"]
    text: str
    agent: str = ""
    response_id: str | None = None
    """The provider's name for the response this line ends, while its chain can be continued; never stored here."""


class AgentMeasure(Value):
    """One invocation of a sub-agent; times in seconds."""

    agent: str
    seconds: float
    ok: bool
    """It came back with an answer."""
    axis: Axis | None = None
    """Which axis a failure is on: 1 is `invocation`, 2 is `data`."""
    reason: Reason | None = None
    cause: Cause | None = None
    """What took the time, where its own ran out."""
    data_faults: int = 0
    """Data calls that failed while it could still answer: axis 2 as well (decisions 9)."""
    partial: bool = False
    """It answered, and data was missing for it."""
    statuses: int = 0
    """Statuses of the vocabulary sent in its name."""
    unknown_statuses: int = 0
    """Statuses outside the vocabulary: dropped, counted here."""
    first_status: float | None = None
    """From its start to its first status; None when it sent none."""
    longest_silence: float = 0.0
    """The longest stretch of its work without a status."""
    alone: bool = False
    """No other was at work while it was, as far as the turn was measured for that."""

    @property
    def is_stopped(self) -> bool:
        """Whether it was stopped with its turn, or waits for its user: that is neither an answer nor a failure."""
        return self.reason in STOPPED


class PurposeUsage(Value):
    """What the model calls of one purpose spent in a turn: decide, work, compose, prior_context, summary."""

    purpose: str
    usage: Usage


class Measures(Value):
    """What metrics need of a turn beside its row, folded once from its events when it ends; times in seconds."""

    agents: tuple[AgentMeasure, ...] = ()
    """In the order in which they ended."""
    routing: float | None = None
    """Spent in deciding whom to ask and in writing prior_context; None when no model was asked to decide."""
    overhead: float | None = None
    """From a decision with calls to the composing call, less the time in which a sub-agent's model or tool was at work;
    None when nobody was asked."""
    envelopes: int = 0
    """Envelopes of the context service, refused ones included."""
    mismatches: tuple[float, ...] = ()
    """When a reply for another principal came in, since the turn began."""
    version_mismatches: int = 0
    model_faults: int = 0
    """Calls of tools that do not exist, or with arguments nobody can read: faults of the model that
    made them (decisions 31)."""
    parts: TurnParts = NO_PARTS
    """What became of the parts of the message."""
    acknowledged: str | None = None
    """How the answer owned up to what failed: composed, recomposed, appended ...; None when nothing was owed."""
    repeats: bool | None = None
    """Whether the composed answer holds the words of a sub-agent byte for byte; None when nothing
    was composed of answers, or the kit put them together itself."""
    compactions: int = 0
    broken: int = 0
    """Parts that were lost, or lack data, because their sub-agent was made to fail."""
    leaked: bool = False
    """Whether a text of a turn that was made to fail holds what no person may read."""
    spent: tuple[PurposeUsage, ...] = ()
    """What its model calls cost, by what they were for."""


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
    measures: Measures = Measures()

    @property
    def principal(self) -> Principal:
        """The tenant and the user that the turn belongs to."""
        return Principal(tenant_id=self.tenant_id, user_id=self.user_id)

    @property
    def has_no_answer(self) -> bool:
        """Whether its process died, or nobody was asked: all of its message is open."""
        return self.status == "interrupted" or not self.invoked

    @property
    def session_key(self) -> SessionKey:
        """The session that the turn belongs to."""
        return SessionKey(self.tenant_id, self.session_id)


class CohortPrompt(Value):
    """What every request of a cohort begins with; the store keeps it once, and events name the cohort."""

    cohort: str
    agent: str
    text: str
    tools: tuple[dict[str, Any], ...] = ()
    """The schemas that were bound, as JSON."""


SUMMARY_NOTE = "summary"
"""The note that holds the newest summary of old turns."""


def summary_of(turn_id: str) -> str:
    """Returns the name of the note that keeps the summary which a turn wrote, for turns that are asked again after
    newer ones. No turn reads it at its beginning (`RECALL_SESSION` passes over it)."""
    return f"summary of {turn_id}"


class Note(Value):
    """What an episode remembers beside its turns: a summary, a support conversation, the end of a response chain."""

    value: str
    at: float
    """Wall clock of its writing, seconds since the epoch."""

    def fields(self, *names: str) -> dict[str, Any] | None:
        """The JSON object that a note of the kit's own holds; None where it is none, or lacks one of these names.

        Whoever can write to the store's file can put anything into it.
        """
        try:
            value: Any = json.loads(self.value)
        # RecursionError: JSON nested deeper than Python reads is no ValueError.
        except (ValueError, RecursionError):
            return None
        if not is_object(value):
            return None
        if all(name in value for name in names):
            return value
        return None


class ShownComponent(Value):
    """A compact reference to a component a user was shown: what "the third one" can mean."""

    turn_id: str
    agent: str
    type: str
    id: str
    title: str
    position: int
    """1, 2, 3 ... among those of its type in that turn, in the order they were shown."""
    payload: dict[str, Any] = Field(default={}, exclude=True, repr=False)
    """What "the cheapest" and "the one from X" are looked up in; it is told to no model and written to no sheet."""


class SessionRecall(Value):
    """What a turn needs to know of its session before it begins; read at once."""

    session: Session
    recollection: Recollection = Recollection()
    notes: dict[str, Note] = {}
    lines: tuple[Message, ...] | None = None
    """The narration of every reader, of a session that takes up another one's past; None where the
    store is read for it."""
    components: tuple[ShownComponent, ...] | None = None
    """What was shown, in the order shown; likewise."""
    has_cut_off: bool = False
    """Whether the process of one of its newest turns died."""
    asked_again: TurnRecord | None = None
    """What `asked_once_more` gave when a turn began whose past this is."""


class Feedback(Value):
    """A person's thumb on a turn."""

    turn_id: str
    score: Literal[0, 1]
    note: str = ""
