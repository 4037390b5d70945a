"""A turn as a whole: how it begins, what it stands on, where it pauses and how it ends."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from kit.core.bodies import earlier
from kit.core.bodies.call import CallFailure
from kit.core.context import Principal, Recollection
from kit.core.fault import Kind
from kit.core.outcome import RoutingDecision, Usage
from kit.core.picture import PictureRef
from kit.core.value import Value


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
    """What this turn was made to run into on purpose, as `agent=kind`; empty for every turn of a
    person who asked for none."""
    pictures: tuple[PictureRef, ...] = ()
    versions: dict[str, str] = {}
    """Card -> the version that this session has, of each card that shares its sessions with a new one."""
    recollection: Recollection | None = None
    """What it was told of its session's turns; None of a turn that an earlier version wrote."""


class AgentBroken(Value):
    """Somebody made an agent fail while the turn ran: from this moment on."""

    kind: Literal["agent_broken"] = "agent_broken"
    agent: str
    fault: Kind


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
    """The agent that got another prompt."""
    faults: tuple[str, ...] | None = None
    """What it is made to fail by instead, as `agent=kind`; of these four, those that are not None are
    what is other."""


class Replay(Value):
    """This span was played from a recording: nothing was called."""

    kind: Literal["replay"] = "replay"


class PlanTaken(Value):
    """This turn works on a stored plan: a new one, or one that it takes up."""

    kind: Literal["plan_taken"] = "plan_taken"
    plan_id: str


class PlanEnded(Value):
    """The plan of this turn has ended."""

    kind: Literal["plan_ended"] = "plan_ended"
    plan_id: str
    status: Literal["complete", "failed"]
    failure: dict[str, Any] | None = None
    """Of one that failed: `reason`, `completed_steps` and `last_failure`, as the plan keeps them."""


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
    """Raw reason, for the trace alone."""
    failure: CallFailure | None = None
    """Set where there is an error."""


class Resumed(Value):
    """This turn had paused, or its process had died, and goes on: what had ended is played."""

    kind: Literal["resumed"] = "resumed"
    turn_id: str
    answers: dict[str, bool] = {}
    """The user's yes or no, by the key of the call."""
    acts: dict[str, Annotated[Act, BeforeValidator(earlier.act_fields)]] = {}
    """What was done before, by the same key."""
    asked: tuple[ApprovalAsked, ...] = ()
    """What it had asked when it paused: the turns that began meanwhile know it as a turn that waits."""


class Completed(Value):
    """The last event of a turn, whatever happened."""

    kind: Literal["completed"] = "completed"
    status: Literal["ok", "failed", "cancelled", "deadline", "paused", "interrupted"]
    text: str
    error: str | None = None
    """Raw reason, for the trace alone."""
    saved: bool = True
    """Whether the store has the turn."""


TurnBody = (
    Thinking
    | TurnStarted
    | AgentBroken
    | TurnUsage
    | Routing
    | Fork
    | Replay
    | PlanTaken
    | PlanEnded
    | ApprovalAsked
    | ActStarted
    | Resumed
    | Completed
)
