"""The five kinds of documents: the fields of their indices and no others."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from kit.core.context import Principal
from kit.core.schema.json_value import is_object
from kit.core.value import Value


def _index(kind: str) -> Any:
    return Field(json_schema_extra={"index": kind})


Keyword = Annotated[str, _index("keyword")]
"""Compared as a whole."""
Text = Annotated[str, _index("text")]
"""Searched by its words."""
Date = Annotated[float, _index("date")]
"""Seconds since the epoch."""
Integer = Annotated[int, _index("integer")]
Boolean = Annotated[bool, _index("boolean")]
Json = Annotated[Any, _index("object")]
"""Kept as it is, never searched."""
DIMENSION = 256
"""Numbers in a vector."""
Vector = Annotated[tuple[float, ...], _index("knn_vector")]
"""As many numbers as the embedder gives, kept with 32 bits each."""
Scope = Literal["session", "user", "tenant"]
OWNER = {
    "session": ("tenant_id", "user_id", "session_id"),
    "user": ("tenant_id", "user_id"),
    "tenant": ("tenant_id",),
}
"""What a memory of each scope has to name."""
PlanStatus = Literal[
    "pending",
    "planning",
    "executing",
    "replanning",
    "complete",
    "failed",
    "cancelled",
    "paused",
    "needs_key",
]
WAITING: tuple[PlanStatus, ...] = ("cancelled", "paused", "needs_key")
"""The states of a plan that has not ended and that only its user takes up again."""
SKILLS = ", "
"""Between the names of skills in the `skill_id` of an event that is about a step of several."""
EXTENSIONS: Mapping[str, set[str]] = {
    "Memory": {"value", "embedder"},
    "AgentSession": {"summary", "support_conversation"},
    "SessionMessage": {"turn_id", "sub_agent_id", "components"},
    "Plan": {
        "original_task",
        "task_type",
        "version",
        "holder",
        "fence",
        "manifests",
        "usage",
        "failure",
        "failure_kind",
    },
    "PlanStep": {"input_from_steps", "failure_kind"},
    "Replan": {"failed_steps"},
    "AgentEvent": {
        "user_id",
        "seq",
        "agent",
        "status",
        "duration_ms",
        "input_size_bytes",
        "response_size_bytes",
        "large_response_triggered",
        "lock_wait_ms",
        "exit_code",
    },
}
"""What each kind has beyond the mapping it was designed with (decisions 21, 40)."""


class Memory(Value):
    """What a task leaves for others: the output of a step, a summary, a fact. Its scope says who may read it."""

    id: Keyword
    tenant_id: Keyword
    scope: Annotated[Scope, _index("keyword")]
    key: Keyword
    """Unique within its tenant; a second write replaces the first."""
    source: Keyword
    """Who wrote it: an agent's id, or what a summary was made by."""
    created_at: Date
    session_id: Keyword | None = None
    user_id: Keyword | None = None
    task_id: Keyword | None = None
    plan_id: Keyword | None = None
    step_index: Integer | None = None
    text: Text | None = None
    embedding: Vector | None = None
    embedder: Keyword | None = None
    """Whose vector that is: those of two embedders say nothing about each other."""
    value: Json = None
    locked_by: Keyword | None = None
    """The task that holds it, until `lock_expires` or until its reader has confirmed."""
    lock_expires: Date | None = None
    ttl_at: Date | None = None
    """From then on nobody reads it."""


class Persona(Value):
    """How an assistant speaks."""

    name: Keyword = ""
    system_prompt: Text = ""
    tone: Keyword = ""
    language: Keyword = ""


class Soul(Value):
    """A persona and its policies: a tenant's, or where it has a user, that user's."""

    id: Keyword
    tenant_id: Keyword
    user_id: Keyword | None = None
    key: Keyword = "soul"
    persona: Persona = Persona()
    policies: Annotated[dict[str, Any], _index("object")] = {}
    updated_at: Date


class SessionMessage(Value):
    """One message of a session's window. A user's has the time at which its turn began, an answer
    that plus the turn's own."""

    msg_id: Keyword
    role: Keyword
    content: Text
    ts: Date
    turn_id: Keyword | None = None
    sub_agent_id: Keyword | None = None
    components: Json = None


class AgentSession(Value):
    """A session as its next turn is told of it: the newest messages, and a summary of older ones.
    An episode is a session."""

    session_id: Keyword
    tenant_id: Keyword
    user_id: Keyword
    state: Annotated[Literal["idle", "running", "paused"], _index("keyword")]
    """Whether a turn of it runs, or its newest waits for the user."""
    started_at: Date
    last_active: Date
    messages: tuple[SessionMessage, ...] = ()
    summary: Text | None = None
    support_conversation: Keyword | None = None


class PlanStep(Value):
    """One step of a plan, and what became of it."""

    step_index: Integer
    task: Text
    skills: tuple[Keyword, ...] = ()
    return_spec: Json = {}
    input_from_step: Integer | None = None
    """The step whose output it works on, where that is one step."""
    input_from_steps: tuple[Integer, ...] = ()
    """Those whose outputs it works on, where they are several."""
    status: Keyword = "pending"
    task_id: Keyword | None = None
    memory_key: Keyword | None = None
    validated: Boolean = False
    failure_reason: Text | None = None
    failure_kind: Keyword | None = None
    """Of which kind that is (`Trigger` in kit/planning/plan.py), where the rest was planned anew for it."""
    started_at: Date | None = None
    finished_at: Date | None = None

    @property
    def inputs(self) -> tuple[int, ...]:
        """The numbers of the steps whose outputs it works on."""
        if self.input_from_step is not None:
            return (self.input_from_step,)
        return self.input_from_steps


class Replan(Value):
    """One revision of a plan, and why it was made."""

    attempt: Integer
    trigger: Keyword
    failed_step: Integer
    reason: Text
    revised_at: Date
    failed_steps: tuple[PlanStep, ...] = ()
    """The steps that failed, as they stood then; a plan that an earlier version stored has none."""


class Plan(Value):
    """A plan as it is stored at every transition."""

    plan_id: Keyword
    session_id: Keyword
    tenant_id: Keyword
    user_id: Keyword
    status: Annotated[PlanStatus, _index("keyword")] = "pending"
    replan_count: Integer = 0
    created_at: Date
    completed_at: Date | None = None
    steps: tuple[PlanStep, ...] = ()
    replan_history: tuple[Replan, ...] = ()
    original_task: Text
    task_type: Keyword | None = None
    version: Integer = 1
    """Grows by one with every write; a write that was made from an older one is refused."""
    holder: Keyword | None = None
    """The turn that works on it; None where nobody does."""
    fence: Integer = 0
    """Grows by one whenever a turn takes the plan: who took it before can neither write it nor act for it."""
    manifests: Json = None
    """Skill -> its manifest as it was when the plan was written: what the steps' executors are told, and held to."""
    usage: Json = None
    """What the plan has taken so far: `tokens_in`, `tokens_out`, `dollars`, `seconds`."""
    failure: Json = None
    """Why it failed: `reason`, `completed_steps`, `last_failure`."""
    failure_kind: Keyword | None = None
    """Of which kind that is (`FailureKind` in kit/planning/plan.py); None where it did not fail."""

    @property
    def owner(self) -> Principal:
        """Whose it is."""
        return Principal(tenant_id=self.tenant_id, user_id=self.user_id)

    @property
    def failure_reason(self) -> str:
        """Why it failed, in words for whoever looks after it; empty where it did not fail."""
        failure: Any = self.failure
        if not is_object(failure):
            return ""
        return str(failure.get("reason", ""))


class AgentEvent(Value):
    """Something that happened; never changed, and gone only past its retention."""

    event_id: Keyword
    """Given by whoever reports it: an event that is reported twice is kept once."""
    tenant_id: Keyword
    event_type: Keyword
    ts: Date
    session_id: Keyword | None = None
    user_id: Keyword | None = None
    plan_id: Keyword | None = None
    task_id: Keyword | None = None
    agent: Keyword | None = None
    skill_id: Keyword | None = None
    script_hash: Keyword | None = None
    status: Keyword | None = None
    payload: Json = None
    duration_ms: Integer | None = None
    input_size_bytes: Integer | None = None
    response_size_bytes: Integer | None = None
    large_response_triggered: Boolean = False
    lock_wait_ms: Integer | None = None
    exit_code: Integer | None = None
    seq: Integer = 0
    """Its place in the log; the store sets it."""
