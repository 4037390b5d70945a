"""The agent card: an agent as a thin index of registered parts. Beside it a worked plan of a deck."""

import datetime
from typing import Any, Literal

from pydantic import Field

from kit.core.display.agent_name import words_of_id
from kit.core.value import Value

Role = Literal["orchestrator", "native", "external-wrapper", "internal-helper"]
ToolMode = Literal["returns_nothing", "fails"]
"""How a tool lets an agent down: it answers with nothing, or not at all."""


class CardPart(Value, use_attribute_docstrings=True):
    """A part of a card; `kit cards schema` tells what each field means."""


class Tuning(CardPart):
    """Knobs handed to the model; a model that lacks one ignores it."""

    max_output_tokens: int | None = Field(default=None, gt=0)
    """The most tokens that one reply may take."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high"] | None = None
    """How long a reasoning model may think before it replies."""
    text_verbosity: Literal["low", "medium", "high"] | None = None
    """How much a model says that can be asked for more or less."""


class Policy(CardPart):
    """Limits of one invocation. None takes the deck's default at bind (decisions 16)."""

    time_budget_ms: int | None = Field(default=None, gt=0)
    """How long the agent may work, its calls included."""
    tokens_in: int | None = Field(default=None, gt=0)
    """Tokens that its models may read, over all their calls."""
    tokens_out: int | None = Field(default=None, gt=0)
    """Tokens that they may write."""
    max_tool_calls: int | None = Field(default=None, ge=0)
    """Calls of its tools; those beyond are refused, and recorded as refused."""
    max_recursion_depth: int | None = Field(default=None, ge=0)
    """Levels of agents this one may have below it; 0 for an agent that asks nobody."""
    cost: float | None = Field(default=None, gt=0)
    """US dollars; needs a model whose price is known."""
    model_time_ms: int | None = Field(default=None, gt=0)
    """How long one model call may take before the fallback model is asked; None: as long as the
    agent has (decisions 10)."""


class HandoffField(CardPart):
    """One input field of a sub-agent, beyond the query."""

    type: Literal["string", "integer", "number", "boolean", "array"] = "string"
    """The type of its value, as JSON names it."""
    description: str = ""
    """What the caller's model is told of it."""
    required: bool = False
    """Whether a call without it is refused."""
    enum: tuple[str, ...] = ()
    """The values that it may have; any, where none is listed."""
    max_length: int | None = Field(default=None, gt=0)
    """Characters of a string."""
    max_items: int | None = Field(default=None, gt=0)
    """Items of an array."""
    max_tokens: int | None = Field(default=None, gt=0)
    """Of a string, at four characters a token."""
    pii: bool = False
    """Redacted in traces."""
    source: Literal["model", "locale", "location", "shown", "conversation"] = "model"
    """Who fills the field: the caller's model, or the runtime, and then the caller's model is not
    asked for it. `locale` and `location` are the session's; `shown` the ids of items shown last
    that the request names or points at, by rule; `conversation` what earlier turns say, in the
    words of the helper model."""

    @property
    def longest(self) -> int | None:
        """Characters a string may have."""
        limits = [self.max_length]
        if self.max_tokens:
            limits.append(4 * self.max_tokens)
        return min(filter(None, limits), default=None)


class Handoff(CardPart):
    """What crosses into a sub-agent and what shape comes back."""

    fields: dict[str, HandoffField] = {}
    """Input fields beside the query, by name."""
    output_schema: dict[str, Any] | None = None
    """JSON Schema of the answer, `maxSentences` for strings included; anything else is a contract violation."""
    max_query_tokens: int | None = Field(default=None, gt=0)
    """Of the query, at four characters a token."""
    min_confidence: float | None = Field(default=None, ge=0, le=1)
    """Below it an answer with a `confidence` comes back as a failure, with its text as a suggestion."""
    closed: bool = False
    """Only the query and the fields go in, no history and no prior context; no question to the user comes out."""

    @property
    def distilled(self) -> bool:
        """Whether a field is filled from earlier turns."""
        for field in self.fields.values():
            if field.source in ("shown", "conversation"):
                return True
        return False


class ToolCase(CardPart):
    """What an agent is asked while one of its tools lets it down, and what it may answer."""

    tool: str
    """Id of the tool."""
    mode: ToolMode
    """Whether it answers with nothing, or not at all."""
    ask: str
    """The user's message."""
    says: tuple[str, ...] = ()
    """Of these the answer holds at least one, in upper or lower case; a typed failure is right as well."""
    never: tuple[str, ...] = ()
    """And none of these: what it would say if it made something up."""


class EvalPolicy(CardPart):
    """Which judge looks at this agent's answers, by which rubric, and the cases that are its own."""

    judge: str
    """`rule`, or the id of a card of the deck whose agent judges."""
    rubric: str
    """Name of the rubric it judges by: the deck's, or one of cards/rubrics."""
    threshold: float = Field(default=0.95, gt=0, le=1)
    """The share of answers that must pass before the card may go live."""
    tool_cases: tuple[ToolCase, ...] = ()
    """A tool with a grant needs one for each mode."""


class ToolGrant(CardPart):
    """When a tool was put on a card, and the flag it stays behind at first."""

    since: datetime.date
    """The day it was put there."""
    flag: str | None = None
    """Must be on for this card to get the tool; None once it has proven itself."""


class AgentCard(CardPart):
    """An agent, declared. `sub_agents` makes it an orchestrator; `role` is a label only (decisions 15).

    `kit cards schema`, the page of fields and the check of unknown keys are made of these fields. One that an agent
    with `run` has no use for goes into `_OF_OWN_AGENTS` (kit/compose/check.py) as well.
    """

    id: str
    """Letters, digits, _ and -. The check of its deck refuses others, not the card: there all
    faults come in one report, each with its file and line."""
    name: str = ""
    """What people read in place of its id, as it stands within a sentence: `e-receipts`. Without one it
    is the id's own words, `offer details` for `offer_details`."""
    description: str
    """What the agent answers; the only thing an orchestrator's model knows when it routes."""
    topics: str = ""
    """What people may ask it, in a few words that go on from "You can ask about"."""
    requests: tuple[str, ...] = ()
    """What people ask it, in their own words. The offline stand-in learns its routing from them. A model of a provider
    is not sent them: they stand in no prompt and in no description of a tool."""
    role: Role = "native"
    """What kind of agent it is, for people; nothing depends on it."""
    model: str = ""
    """Key in models.yaml; an agent without `run` needs one."""
    run: str | None = None
    """What answers in the place of a model: `./agents.py:flights` for an object in a file beside
    deck.yaml, `package.module:NAME`, or the address of a service. A function, an agent of another
    framework or a service does its own prompting and calls its own tools (docs/bridges.md)."""
    tools: tuple[str, ...] = ()
    """The whitelist: ids of the tools this agent may call."""
    tool_grants: dict[str, ToolGrant] = {}
    """Tools that were added later; for thirty days each call of one says so in the trace."""
    prompt_blocks: tuple[str, ...] = ()
    """Names of texts in cards/blocks that its prompt is put together from, in this order. What an agent is told of its
    work, its manner or its language is a sentence of a block."""
    sub_agents: tuple[str, ...] = ()
    """Ids of the agents that it may ask."""
    tuning: Tuning = Tuning()
    """Knobs of its model."""
    version: str = "1"
    """Told apart in traces, figures and shared sessions; it changes with the card."""
    status: Literal["active", "draft"] = "active"
    """A draft is checked with its deck, and asked by nobody."""
    flag: str | None = None
    """Feature flag that must be on for this agent to be bound; None means always."""
    preamble: str | None = None
    """The line an orchestrator says when its model calls tools without a word, or claims something before any result.
    Without one, or in a session of another language, the language's own line is said."""
    tool_config: dict[str, dict[str, Any]] = {}
    """First layer of tool configuration: tool id -> values."""
    fallback_model: str | None = None
    """Key in models.yaml of the model that is asked where the first one fails or takes too long."""
    handoff: Handoff = Handoff()
    """What goes into the agent beside the query, and the shape of its answer."""
    resume: Literal["reinvoke", "reuse", "partial"] = "reinvoke"
    """What becomes of its work when the turn goes on after its process died. `reinvoke`: it begins
    anew. `reuse`: likewise, and an answer that it had given is used again wherever the same is
    asked. `partial`: what had ended in it is played."""
    policy: Policy = Policy()
    """Its limits in one invocation."""
    eval: EvalPolicy | None = None
    """How its answers are judged; None: they are not."""

    @property
    def tool_name(self) -> str:
        """The name an orchestrator's model sees."""
        return f"ask_{self.id}"

    @property
    def label(self) -> str:
        """What people read in place of its id."""
        return self.name or words_of_id(self.id)


class StepInputs(Value):
    """What a step of a plan works on."""

    input_from_step: int | None = None
    """The step before it whose output it works on."""
    input_from_steps: tuple[int, ...] = ()
    """The steps before it whose outputs it works on, where they are several."""

    @property
    def inputs(self) -> tuple[int, ...]:
        """The numbers of the steps whose outputs it works on, each once."""
        numbers = set(self.input_from_steps)
        if self.input_from_step is not None:
            numbers.add(self.input_from_step)
        return tuple(sorted(numbers))


class ExampleStep(StepInputs):
    """One step of an example; it has the number of its place in the list."""

    task: str = Field(min_length=1)
    """What its executor is to do; slots of the request may stand in it."""
    skills: tuple[str, ...] = Field(min_length=1)
    shape: dict[str, Any]
    """What it returns, in the notation of kit.core.schema.shape."""
    reason: str = "for the answer"
    """Why somebody needs what it returns."""


class PlanExample(Value):
    """A request and the steps that answer it (docs/plans.md)."""

    request: str = Field(min_length=1)
    """The words of the request. A slot such as `{city}` stands for one word or one name, which the
    tasks of the steps repeat by the same slot; where it stands twice, both times for the same. What stands in
    brackets, `[ in {city}]`, may be missing."""
    task_type: str | None = None
    """Of what kind the request is, such as rank_outlets: by it plans are counted together."""
    steps: tuple[ExampleStep, ...] = Field(min_length=1)
