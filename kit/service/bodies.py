"""What the API takes and what it gives, as docs/openapi.json describes it."""

from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StringConstraints

from kit.core.context import ID
from kit.core.documents.document import AgentEvent, Persona, PlanStatus, Scope
from kit.core.event import Event
from kit.core.value import Value
from kit.runtime.message import LONGEST

Id = Annotated[str, StringConstraints(pattern=ID)]
"""An id of a tenant, a user or a session. It stands in keys, addresses and headers: not every text is one."""
TurnState = Literal[
    "running", "ok", "failed", "cancelled", "deadline", "paused", "interrupted", "needs_key"
]


class RunRequest(Value):
    """One message of a user. Who asks also stands in the headers, and has to be the same."""

    tenant_id: Id
    user_id: Id
    session_id: Id
    message: str = Field(min_length=1, max_length=LONGEST)
    stream: StrictBool = False
    """Whether the reply is a stream of events."""


class ResumeRequest(Value):
    stream: StrictBool = False


class AnswerRequest(Value):
    answers: StrictBool | dict[str, StrictBool]
    """Yes or no to everything that is asked, or to each question by its key."""
    stream: StrictBool = False


class LastFailure(Value):
    step: int
    reason: str


class PlanFailure(Value):
    """Why a plan failed."""

    status: Literal["failed"] = "failed"
    reason: str
    completed_steps: tuple[int, ...] = ()
    last_failure: LastFailure | None = None


class RunResult(Value):
    """How a turn ended."""

    turn_id: str
    response: str
    plan_id: str | None = None
    status: TurnState
    failure: PlanFailure | None = None
    questions: dict[str, str] = {}
    """Of a turn that waits for its user: key -> question."""
    saved: bool = True
    """False where the store did not take it: it is in no history until the store does."""


class TurnNow(Value):
    turn_id: str
    status: TurnState


class TurnSummary(Value):
    turn_id: str
    session_id: str
    message: str
    response: str
    """Empty while the turn runs."""
    status: TurnState
    pattern: str
    model: str
    started_at: float
    seconds: float | None


class TurnList(Value):
    turns: tuple[TurnSummary, ...]
    """The newest first."""


class PlanSummary(Value):
    plan_id: str
    session_id: str
    status: PlanStatus
    original_task: str
    replan_count: int
    created_at: float
    completed_at: float | None


class PlanList(Value):
    plans: tuple[PlanSummary, ...]
    """The newest first."""


class PlanTrace(Value):
    events: tuple[AgentEvent, ...]
    """In the order in which they happened."""


class PlanOutputs(Value):
    outputs: dict[int, Any]
    """Number of a step that is done -> what it gave."""


class PlanNow(Value):
    plan_id: str
    status: PlanStatus


class SoulRequest(Value):
    """How the assistant speaks to a tenant, or where a user is named, to that user."""

    user_id: Id | None = None
    persona: Persona = Persona()
    policies: dict[str, Any] = {}


class FoundMemory(Value):
    key: str
    scope: Scope
    source: str
    text: str | None
    value: Any = None
    created_at: float
    session_id: str | None
    task_id: str | None
    plan_id: str | None
    step_index: int | None


class MemoryList(Value):
    memories: tuple[FoundMemory, ...]
    """The best first."""


class Health(Value):
    status: Literal["ok", "ready"]


class Problem(Value):
    """Why a request was refused."""

    detail: str


COMPONENT = "#/components/schemas/{model}"
STREAM_ITEM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "description": "The kind of the event, or result"},
        "id": {"type": "string", "description": "The number of the event, for Last-Event-ID"},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": {
                "anyOf": [
                    {"$ref": COMPONENT.format(model="Event")},
                    {"$ref": COMPONENT.format(model="RunResult")},
                ]
            },
        },
    },
    "required": ["event", "data"],
}
"""What each server-sent event of a stream is."""


def stream_schemas() -> dict[str, Any]:
    """Returns the JSON Schema of an event and of each value in it, by name."""
    schema = Event.model_json_schema(ref_template=COMPONENT, mode="serialization")
    schemas: dict[str, Any] = schema.pop("$defs")
    schemas["Event"] = schema
    return schemas
