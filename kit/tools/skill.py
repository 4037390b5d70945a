"""What a skill says of itself, what a call of it gave, and what whoever works over skills asks of their service."""

import json
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import ConfigDict, Field, SecretStr

from kit.core.value import Value

FIND = "find_relevant_skills"
LOAD = "load_skill"
"""The two tools of a skill service that are no skills: they find and describe them."""
KEY = "X-Api-Key"
STEPS = "steps"
"""The header that carries a key, and where, below the URL of a service, a step of a plan gets one of its own."""
IDEMPOTENCY_KEY = "idempotency_key"
ALLOWED = "allowed_skills"
FENCE = "fence"
"""What travels beside a call over MCP, in its `_meta`."""
Refused: TypeAlias = Literal[
    "unknown_skill", "skill_not_allowed", "bad_arguments", "key_reused", "superseded"
]
"""Why a service does not run a call. `key_reused`: its idempotency key is that of another call;
`superseded`: somebody with a higher fence has called for the same plan."""
SkillReason: TypeAlias = (
    Refused | Literal["unauthorized", "timeout", "gone", "schema_mismatch", "oversized", "failed"]
)
"""Why there is no result. `gone`: the service cannot be reached; `schema_mismatch`: it breaks its
own schema, or the protocol; `failed`: the skill itself reports an error."""


class Fence(Value):
    """Who may act for a plan: whoever took it last, and so has the highest number."""

    plan_id: str
    number: int


class SkillSummary(Value):
    """A skill that may fit a task."""

    skill_name: str
    description: str


class SkillManifest(Value):
    """One skill as its service describes it. Fields that a service has beyond these are passed over."""

    model_config = ConfigDict(extra="ignore")
    id: str = Field(pattern=r"^[A-Za-z][\w.-]{0,99}$")
    description: str
    capabilities: tuple[str, ...] = ()
    limitations: tuple[str, ...] = ()
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    execution_mode: Literal["sync"] = "sync"
    """When the result is there: with the reply to the call. There is no other mode."""
    endpoint: str = ""
    """Where it is called over plain HTTP, below the URL of the service; empty where it is not."""
    idempotent: bool = False
    """Whether calling it twice does what calling it once does."""
    honours_keys: bool = False
    """Whether a call that carries the idempotency key of an earlier one gets its result, and runs no second time."""

    @property
    def words(self) -> str:
        """What a model reads before it calls the skill."""
        sentences = [self.description]
        if self.capabilities:
            sentences.append(f"Can {'; '.join(self.capabilities)}.")
        if self.limitations:
            sentences.append(f"Cannot {'; '.join(self.limitations)}.")
        return " ".join(sentences)

    @property
    def repeatable(self) -> bool:
        """Whether a call whose end is unknown may be made again (decisions 41)."""
        return self.idempotent or self.honours_keys


class SkillResult(Value):
    """What a skill gave; nobody has held it against a schema yet."""

    skill: str
    content: dict[str, Any] | None
    """None where the skill gave text alone."""
    text: str
    """The canonical form (`canonical_text`)."""
    size_bytes: int
    """Bytes of `text` in UTF-8: what is compared with the limit of a large response."""
    input_size_bytes: int
    """Bytes of the arguments, in the same form."""
    duration_ms: int


class SkillFault(Value):
    """A skill, or its service, gave nothing that can be used."""

    skill: str
    """The one asked for; `find_relevant_skills` where no skill is."""
    reason: SkillReason
    detail: str = ""
    """For the trace and the planner; no key is ever in it."""
    sent: bool = True
    """Whether the call left for the service; False where that could not be reached, or was only
    asked about its skills."""
    input_size_bytes: int = 0
    duration_ms: int = 0

    @property
    def uncertain(self) -> bool:
        """Whether the skill may have run all the same, to an end that nobody knows (decisions 41)."""
        return self.sent and self.reason in ("timeout", "gone")


class SkillRefusal(Value):
    """How a service says that a call did not run. The words are the same whether a skill is another
    tenant's or nobody's."""

    type: Refused
    skill: str
    message: str


class StepToken(Value):
    """The key of one step, as a service gives it."""

    token: str = Field(min_length=1, repr=False)
    expires_in: float
    """Seconds for which it holds."""


class StepSkills(Protocol):
    """The skills that one step of a plan may call."""

    async def call(
        self, skill: str, arguments: Mapping[str, Any], idempotency_key: str
    ) -> SkillResult | SkillFault:
        """Calls a skill; whatever goes wrong is a value. A skill the step does not name is refused in this process."""
        ...


class Skills(Protocol):
    """The skills that one key opens. What the key does not open is as if it were not there."""

    async def find(self, query: str) -> tuple[SkillSummary, ...] | SkillFault:
        """The skills that may fit a task in words, the best first."""
        ...

    async def load(self, name: str) -> SkillManifest | SkillFault:
        """One skill whole, its schemas checked to be schemas."""
        ...

    def step(
        self, allowed: Collection[str], fence: Fence
    ) -> AbstractAsyncContextManager[StepSkills]:
        """Narrows the skills to those that a step names, until the end of the block. The `fence` goes with
        every call."""
        ...


class SkillService(Protocol):
    """A skill service as the requests of many tenants share it."""

    @property
    def needs_key(self) -> bool:
        """Whether it opens only for a key that comes with a request."""
        ...

    def client(self, tenant_id: str, key: SecretStr | None) -> AbstractAsyncContextManager[Skills]:
        """Gives a request its own client, until the end of the block."""
        ...


@dataclass(frozen=True, slots=True)
class SharedSkills:
    """A service whose one client serves every request, such as one that is run as a command."""

    skills: Skills
    needs_key: bool = False

    @asynccontextmanager
    async def client(self, tenant_id: str, key: SecretStr | None) -> AsyncGenerator[Skills]:
        yield self.skills


def canonical_text(content: Any, text: str = "") -> str:
    """The one form of a result that is measured and put away: compact sorted JSON of what is structured, else its text.

    A structured result travels twice, as content and as text; this counts it once.
    """
    if content is None:
        return text
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def text_size(text: str) -> int:
    """Bytes of a text in UTF-8; half of a surrogate pair counts as one byte."""
    return len(text.encode("utf-8", "replace"))
