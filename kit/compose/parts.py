"""The values a deck is made of: prompt blocks, guards, deck settings, and `Parts`, which holds them
all before any check."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, cast

from pydantic import Field, ValidationInfo, field_validator, model_validator

from kit.compose.deck_code import DeckCode
from kit.compose.page import PageSettings
from kit.compose.reference import Kind
from kit.compose.topology import Rubric, Topology
from kit.core.card import AgentCard, PlanExample, Policy
from kit.core.language.danger import Danger
from kit.core.model import ModelSpec
from kit.core.schema.json_value import is_object
from kit.core.status import OWN, Term
from kit.core.value import Value
from kit.tools.deck_tools import DeckTools
from kit.tools.loading import complete_references
from kit.tools.mcp.server import McpServer
from kit.tools.tool import NO_LIMITS, ToolLimits, merge_limits

Act = Literal["forward", "transform", "suppress", "batch"]


class StatusRule(Value):
    """What becomes of one status."""

    act: Act = "forward"
    into: str | None = None
    """For `transform`: the status whose words are read in its place."""


class StatusPolicy(Value):
    """How statuses become lines. As it stands every status is forwarded at once, in the order they come."""

    default: Literal["forward", "suppress", "batch"] = "forward"
    """For every status without a rule of its own."""
    rules: dict[str, StatusRule] = {}
    """Status -> rule; a rule is for the event, whoever sends it."""
    batch_by: Literal["turn", "agent"] = "turn"
    """Whether a batch gathers from everybody at work or from each agent apart."""
    window_ms: int = Field(default=400, gt=0)
    """How long a batch gathers, from its first status on."""
    order: Literal["arrival", "interleave"] = "arrival"
    """`interleave`: nobody is heard twice in a row while another agent is at work."""
    gap_ms: int = Field(default=0, ge=0)
    """At least this long between two lines; 0 for no limit."""
    collapse: bool = True
    """Lines that wait together become one sentence; otherwise each is said, one after another."""
    quiet_ms: int | None = Field(default=1500, gt=0)
    """After so long without any status of an agent, the runtime says for it that it is thinking; None: never."""

    def rule(self, status: str) -> StatusRule:
        return self.rules.get(status) or StatusRule(act=self.default)

    @property
    def plain(self) -> bool:
        """Nothing ever waits or changes: no state is needed to tell what is read."""
        return (
            not self.rules
            and self.default == "forward"
            and self.order == "arrival"
            and not self.gap_ms
        )


PLATFORM = "platform"
Category = Literal["persona", "instructions", "capabilities", "safety", "format", "context"]

LIMITS = Policy(
    time_budget_ms=8_000,
    tokens_in=64_000,
    tokens_out=4_000,
    max_tool_calls=8,
    max_recursion_depth=1,
)
"""Limits of an agent where neither its card nor its deck sets one (decisions 16)."""


class Block(Value):
    """A piece of a system prompt."""

    id: str
    category: Category
    owner: str
    """`platform`, `shared`, or the id of the vertical it belongs to."""
    version: str = "1"
    flag: str | None = None
    """Feature flag that must be on for the block to be present; None means always."""
    text: str


class Guards(Value, use_attribute_docstrings=True):
    """The checks between the orchestrator's decision and its execution; each can be switched off
    for a deck (decisions 7)."""

    failsafe: bool = True
    """Asks the model once more when it made fewer calls than it counted intents."""
    duplicate: bool = True
    """Makes the same request to the same sub-agent once."""
    echo: bool = True
    """Sends a short answer to the support agent's question back to the support agent."""
    overlap: bool = True
    """Drops a call that shares no content word with the message, where other calls share one with its every part."""
    verbatim: bool = True
    """Puts the user's exact words into a single call, into every call of a short message, and the
    part that no other call covers into one that shares no word with it."""
    fastpath: bool = True
    """Accepts a reply without calls for small talk only."""


GUARDS = Guards()


class Visitor(Value):
    """Who asks when nobody says so."""

    tenant_id: str = "local"
    user_id: str = "visitor"
    location: str | None = None
    locale: str = "en-US"


class Canary(Value):
    """How a card's new version, `<name>.next.yaml`, shares the sessions with the one in place."""

    share: float = Field(default=0.05, gt=0, le=1)
    """The part of all sessions that has the new version. It may grow: nobody who has it is moved back."""
    margin: float = Field(default=0.05, gt=0, lt=1)
    """By how much the new one may score less in each of its two evaluations and still take the other's place."""


class PlanSettings(Value):
    """Who plans and who executes where a turn is run as a plan (docs/plans.md)."""

    planner: str
    """Id of the card that writes plans. No orchestrator asks it."""
    executor: str
    """Id of the card that each step gets an agent of."""
    budget: Policy = Policy(time_budget_ms=120_000)
    """What a whole plan may take in tokens, dollars and time, however often it is resumed."""
    steps_at_once: int = Field(default=5, ge=1)
    """How many of its steps may be at work at the same time."""
    recall: int = Field(default=0, ge=0)
    """How many earlier answers to similar tasks of the same user a planner reads; with 0 none is kept for that."""
    examples: tuple[PlanExample, ...] = ()
    """Requests with their steps: what the offline stand-in plans by. Language models are told
    their task types alone."""

    @property
    def task_types(self) -> tuple[str, ...]:
        """The kinds of tasks that the examples name, each once."""
        return tuple(dict.fromkeys(filter(None, (example.task_type for example in self.examples))))


class DeckSettings(Value):
    """The settings of a whole deck, as deck.yaml gives them."""

    orchestrator: str
    """Id of the one card that may have sub_agents."""
    required_blocks: tuple[str, ...] = ()
    """Platform blocks put at the head of every prompt, in this order. A deck without any says so
    itself (decisions 29)."""
    exempt: tuple[str, ...] = ()
    """Helper cards (judge, distiller) that go without the required blocks (decisions 15); no card
    that speaks to a user."""
    tools: tuple[str, ...] = ()
    """The code that holds the deck's tools: `package.module:NAME`, or `./file.py:NAME` for a file beside deck.yaml.
    One may stand without a list; a file without a name means its TOOLS."""
    patterns: tuple[str, ...] = Field(default=(), exclude=True)
    """The code that holds the deck's own ways to run a turn, as under `tools:`."""
    pages: tuple[str, ...] = Field(default=(), exclude=True)
    """The code of the deck's own pages in the app, one function each."""
    tool_limits: dict[str, ToolLimits] = {}
    """Tool id -> how long a call of it may take, how often it is tried again, and how many run at
    once, whoever calls it."""
    environment: tuple[str, ...] = ()
    """The environment variables that this code may read; it is given no others."""
    mcp: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,32}$")], McpServer] = Field(
        default={}, exclude=True
    )
    """MCP servers by name; a card lists their tools as `name.tool` (docs/mcp.md)."""
    skill_service: McpServer | None = Field(default=None, exclude=True)
    """Where plans find their skills, unless SKILL_SERVICE_URL names another service (docs/outlets.md)."""
    large_result: int = Field(default=50_000, gt=0, exclude=True)
    """Characters of a tool's result above which an agent with `exec_python` reads its beginning,
    and the rest by a script."""
    cap: int = Field(default=4, gt=0)
    """How many sub-agents one turn may call at most."""
    default_sub_agent: str | None = None
    """The sub-agent that gets a message no other one fits; None lets the orchestrator say that
    nothing fits (decisions 5)."""
    support_agent: str | None = None
    """The sub-agent that handles support; the guard `echo` sends a short answer to its question back to it."""
    guards: Guards = GUARDS
    """In deck.yaml also one word: false switches all of them off, and what the model emits runs (decisions 25). A
    reference or a list of them names guards of the deck's own; beside switches they stand under `own:`."""
    own_guards: tuple[str, ...] = Field(default=(), exclude=True)
    """The references of `guards:`. These are applied after the kit's, in this order."""
    danger: tuple[str, ...] = ()
    """Locales whose words for danger to life are looked for in each message before anybody is asked, such as `en-US`;
    cards/danger/<locale>.yaml holds the words and what is answered (docs/danger.md)."""
    defaults: Policy = LIMITS
    turn_budget_ms: int = Field(default=30_000, gt=0)
    """Milliseconds a turn may take; then the answers in hand are used."""
    turns_at_once: int | None = Field(default=None, gt=0, exclude=True)
    """Turns that one process answers at the same time, or all processes that share a Redis; others wait, and their time
    begins when they are let in. None: any. How many one tenant or user may have says kit/service/limits.py."""
    model_call_budget_ms: int = Field(default=10_000, gt=0)
    """Milliseconds one model call of the orchestrator may take, be it to route or to compose. Past
    it the card's fallback model is asked, once in a turn; without one the answers in hand are used
    (decisions 10)."""
    flush_ms: int = Field(default=15, ge=0)
    """Milliseconds between two pieces of a text that had to wait for another sub-agent, where
    sub-agents speak to the user."""
    helper_model: str | None = None
    """Key of the cheaper model for small jobs (prior_context, summaries); None takes the orchestrator's."""
    compose_model: str | None = None
    """Key of a cheaper model that words the answer once sub-agents came back; None takes the orchestrator's."""
    helper_ms: int = Field(default=3_000, gt=0)
    """Milliseconds one such job may take; a turn goes on without it."""
    history: Literal["own", "whole"] = "own"
    """What a sub-agent reads of earlier turns: its own part; or, to be compared with that, the whole conversation."""
    compact_after: int | None = Field(default=16, gt=0)
    """Turns the orchestrator remembers whole before old ones are summed up; None sums up nothing."""
    compact_tokens: int | None = Field(default=None, gt=0)
    """Estimated tokens of these turns above which they are summed up sooner; None sets no such limit."""
    compact_keep: int = Field(default=6, ge=1)
    """How many of the newest turns stay whole."""
    surface: str = "chat"
    """The surface whose topologies apply unless an environment names another."""
    topologies: dict[str, dict[str, Topology]] = {}
    """Surface -> sub-agent -> how a call of it is carried out; a sub-agent that is not listed answers itself."""
    components: dict[str, Kind] = {}
    """Component type -> how people speak of it, for "offer 3" and "the cheapest product" (decisions 32)."""
    statuses: dict[str, Term] = {}
    """The vocabulary of progress: what the deck's tools may send; a list of names will do where none is deprecated."""
    status_phrases: dict[str, str] = {}
    """Status id -> the assistant's words for it."""
    status_policy: StatusPolicy = StatusPolicy()
    """Which progress reports of sub-agents the user reads, and when."""
    visitor: Visitor = Visitor()
    """On whose behalf turns run where neither the session nor the settings name anybody."""
    today: str | None = Field(default=None, exclude=True)
    """The date in the deck's world, where it has one: a reference such as `package.module:today` to
    a function that returns it as ISO text, or None, given the data folder and the environment
    variables listed above (decisions 36)."""
    planning: PlanSettings | None = Field(default=None, exclude=True)
    """Lets turns run as plans; None: this deck has no planner."""
    canary: dict[str, Canary] = Field(default={}, exclude=True)
    """Card -> how its new version shares the sessions, where that is not the usual (docs/how-to/evolve.md)."""
    page: PageSettings = PageSettings()
    """What the chat page says and shows over this deck."""

    @field_validator("tools", "patterns", "pages", mode="before")
    @classmethod
    def _references(cls, value: object, info: ValidationInfo) -> object:
        return complete_references(info.field_name or "", value)

    @model_validator(mode="before")
    @classmethod
    def _split_guards(cls, fields: object) -> object:
        """Takes the references to own guards out of `guards:`, which beside them holds switches."""
        if not is_object(fields):
            return fields
        guards = fields.get("guards")
        if isinstance(guards, str | list):
            switches: dict[str, object] = {}
            listing = cast("object", guards)
        elif is_object(guards) and "own" in guards:
            # A copy: the file's own values are still asked for the place of a fault.
            switches = {**guards}
            listing = switches.pop("own")
        else:
            return fields
        references = complete_references("guards", listing)
        return {**fields, "guards": switches, "own_guards": references}

    @field_validator("guards", mode="before")
    @classmethod
    def _all_or_none(cls, guards: object) -> object:
        if isinstance(guards, bool):
            return dict.fromkeys(Guards.model_fields, guards)
        return guards

    @field_validator("statuses", mode="before")
    @classmethod
    def _terms_of_names(cls, statuses: object) -> object:
        if isinstance(statuses, list):
            return {name: Term() for name in cast("list[str]", statuses)}
        return statuses

    @property
    def code(self) -> Mapping[str, tuple[str, ...]]:
        """The references to the deck's own patterns, guards and pages, by section."""
        return {"patterns": self.patterns, "guards": self.own_guards, "pages": self.pages}

    @property
    def vocabulary(self) -> Mapping[str, Term]:
        """Every status that may be sent: the deck's and the runtime's own."""
        return {**OWN, **self.statuses}


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Cards, blocks, models and settings by id. `Check` finds out whether they fit together."""

    name: str
    settings: DeckSettings
    cards: Mapping[str, AgentCard]
    blocks: Mapping[str, Block]
    models: Mapping[str, ModelSpec]
    flags: Mapping[str, bool]
    tool_settings: Mapping[str, Mapping[str, Any]]
    """Second layer of tool configuration: tool id -> values, per environment."""
    flag_settings: Mapping[str, Mapping[str, Mapping[str, Any]]]
    """Third layer: flag -> tool id -> values that hold while the flag is on."""
    tool_flags: Mapping[str, str]
    """Tool id -> the flag that must be on for the tool to be bound at all."""
    rubrics: Mapping[str, Rubric]
    dangers: Mapping[str, Danger]
    """Locale -> how people there speak of danger to life, and what they are answered."""
    environment_surface: str | None = None
    """The surface an environment chooses over the deck's."""
    tools: DeckTools
    """The tools that come with the deck; a Kit opens them."""
    code: DeckCode
    """The patterns, guards and pages that come with the deck."""
    next_cards: Mapping[str, AgentCard] = field(default_factory=dict[str, AgentCard])
    """Card -> its new version, which has a share of the sessions."""

    @property
    def surface(self) -> str:
        """The surface this deck serves, such as a chat or a batch job: the environment's, else the deck's own."""
        return self.environment_surface or self.settings.surface

    def on(self, flag: str | None) -> bool:
        """Whether a flag is on. None, for a part without a flag, is on; an undeclared flag is off."""
        return flag is None or self.flags.get(flag, False)

    def tool_on(self, tool_id: str) -> bool:
        """Whether a tool may be bound in this environment."""
        return self.on(self.tool_flags.get(tool_id))

    def tools_on(self, card: AgentCard) -> tuple[str, ...]:
        """The tools a card gets here: those whose own flag is on, and the flag of the card's grant."""
        grants = card.tool_grants
        tools: list[str] = []
        for tool in card.tools:
            if self.tool_on(tool) and (tool not in grants or self.on(grants[tool].flag)):
                tools.append(tool)
        return tuple(tools)

    def is_active(self, card: AgentCard) -> bool:
        """Whether a card is to be bound: status active, flag on."""
        return card.status == "active" and self.on(card.flag)

    def active(self) -> tuple[AgentCard, ...]:
        """Every card that is to be bound."""
        return tuple(filter(self.is_active, self.cards.values()))

    def active_sub_agents(self, card: AgentCard) -> tuple[AgentCard, ...]:
        """The sub-agents of a card that are to be bound, in the card's order."""
        sub_agents = [self.cards[name] for name in card.sub_agents]
        return tuple(filter(self.is_active, sub_agents))

    def blocks_without_routing(self, card: AgentCard) -> list[str]:
        """The blocks of an orchestrator's card for one that routes nobody: instructions say how to route."""
        blocks: list[str] = []
        for block in card.prompt_blocks:
            if self.blocks[block].category != "instructions":
                blocks.append(block)
        return blocks

    def policy(self, card: AgentCard) -> Policy:
        """The limits of a card: its own, else the deck's, else the kit's (decisions 16)."""
        limits: dict[str, Any] = {}
        for layer in (LIMITS, self.settings.defaults, card.policy):
            limits |= layer.model_dump(exclude_none=True)
        return Policy(**limits)

    def tool_config(self, card: AgentCard, tool_id: str) -> dict[str, Any]:
        """Returns the configuration a tool is built with: the card's, then the environment's, then
        that of each flag that is on.

        A later layer replaces single values of an earlier one; among flags the one declared last wins.
        """
        # The environment's come after the card's: who runs a deck knows the machine it runs on.
        config = {**card.tool_config.get(tool_id, {}), **self.tool_settings.get(tool_id, {})}
        for flag, tools in self.flag_settings.items():
            if self.on(flag):
                config |= tools.get(tool_id, {})
        return config

    def tool_limits(self, card: AgentCard, tool_id: str, limits: ToolLimits) -> ToolLimits:
        """Returns the limits of a tool in a card's hands: those of its configuration, else of
        deck.yaml, else the tool's own `limits`.

        Raises BindError for limits that cannot be used.
        """
        deck = self.settings.tool_limits.get(tool_id, NO_LIMITS).model_dump(exclude_unset=True)
        return merge_limits(tool_id, limits, deck, self.tool_config(card, tool_id))
