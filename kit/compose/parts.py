"""The parts a deck is made of, before and after anyone has checked them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import Field

from kit.compose.page import PageSettings
from kit.compose.registry import Registry
from kit.compose.status import StatusPolicy
from kit.compose.topology import Rubric, Topology
from kit.core.card import AgentCard, Policy
from kit.core.model import OFFLINE, ModelSpec
from kit.core.value import Value
from kit.tools.deck_tools import DeckTools

PLATFORM = "platform"
Category = Literal["persona", "instructions", "capabilities", "safety", "format", "context"]

LIMITS = Policy(time_budget_ms=8_000, tokens_in=64_000, tokens_out=4_000, max_tool_calls=8, max_recursion_depth=1)
"""What holds where neither the card nor its deck says anything (decisions 16)."""


class Block(Value):
    """A piece of a system prompt (PC1-S5.7)."""

    id: str
    category: Category
    owner: str
    """`platform`, `shared`, or the id of the vertical it belongs to."""
    version: str = "1"
    flag: str | None = None
    """Feature flag that must be on for the block to be present; None means always (PC1-S5.5b)."""
    text: str


class Guards(Value):
    """The checks between the orchestrator's decision and its execution; each can be switched off for a deck (decisions 7)."""

    failsafe: bool = True
    """Fewer calls than the model counted intents: it is asked once more (SAT-2)."""
    duplicate: bool = True
    """The same request to the same sub-agent is made once."""
    echo: bool = True
    """A short answer to the support agent's question goes to it (SAT-3)."""
    overlap: bool = True
    """In a mixed decision, a call that shares no content word with the message is dropped (SAT-4)."""
    verbatim: bool = True
    """A single call, or a short message, travels in the user's exact words (SAT-5)."""
    fastpath: bool = True
    """A reply without calls stands for small talk only (SAT-6)."""


GUARDS = Guards()


class DeckSettings(Value):
    """What holds for a whole deck; deck.yaml."""

    orchestrator: str
    """Id of the one card that may have sub_agents (PC1-S5.9b)."""
    required_blocks: tuple[str, ...] = ()
    """Platform blocks put at the head of every prompt, in this order (PC1-FR-12)."""
    exempt: tuple[str, ...] = ()
    """Helper cards (judge, distiller) that go without the required blocks (decisions 15)."""
    tools: tuple[str, ...] = ()
    """The code that holds the deck's tools: `package.module:NAME`, or `./file.py:NAME` for a file beside deck.yaml."""
    environment: tuple[str, ...] = ()
    """The environment variables that this code may read; it is given no others."""
    cap: int = 4
    """Most sub-agents called in one turn (PC2-FR-7)."""
    default_sub_agent: str | None = None
    """Who is asked when nothing fits; None: the orchestrator says so itself (decisions 5)."""
    support_agent: str | None = None
    """Who handles support: a short answer to its question goes back to it (SAT-3)."""
    guards: Guards = GUARDS
    defaults: Policy = LIMITS
    turn_budget_ms: int = Field(default=30_000, gt=0)
    """Milliseconds a turn may take; then the answers in hand are used."""
    model_call_budget_ms: int = Field(default=10_000, gt=0)
    """Milliseconds one model call of the orchestrator may take, be it to route or to compose. Past it the card's fallback model
    is asked, once in a turn; without one the answers in hand are used (PC2-S5.8b, decisions 10)."""
    flush_ms: int = Field(default=15, ge=0)
    """Between two pieces of a text that waited for another sub-agent to end, where they speak to the user themselves (SAT-23)."""
    helper_model: str | None = None
    """Key of the cheaper model for small jobs (prior_context, summaries); None takes the orchestrator's (PC1-NFR-7)."""
    compose_model: str | None = None
    """Key of a cheaper model that words the answer once sub-agents came back; None takes the orchestrator's (PC1-NFR-7)."""
    helper_ms: int = Field(default=3_000, gt=0)
    """Milliseconds one such job may take; a turn goes on without it."""
    compact_after: int | None = Field(default=16, gt=0)
    """Turns the orchestrator remembers whole before old ones are summed up; None sums up nothing (PC1-FR-11, PC1-NFR-5)."""
    compact_tokens: int | None = Field(default=None, gt=0)
    """Estimated tokens of them at which that happens sooner."""
    compact_keep: int = Field(default=6, ge=1)
    """How many of the newest turns stay whole."""
    surface: str = "chat"
    """Which topologies hold where nobody names a surface."""
    topologies: dict[str, dict[str, Topology]] = {}
    """Surface -> sub-agent -> how its calls are carried out; one that is not listed is asked itself (SO-7)."""
    status_phrases: dict[str, str] = {}
    """Status id -> the assistant's words for it (PC2-FR-13)."""
    status_policy: StatusPolicy = StatusPolicy()
    """What of the sub-agents' progress is read, and when (PC2-S5.7)."""
    page: PageSettings = PageSettings()
    """What the chat page says and shows over this deck."""


def _no_models() -> Mapping[str, ModelSpec]:
    return Registry("model", {OFFLINE.key: OFFLINE})


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Cards, blocks, models and settings by id; nothing says yet that they fit together."""

    name: str
    settings: DeckSettings
    cards: Mapping[str, AgentCard]
    blocks: Mapping[str, Block] = field(default_factory=lambda: Registry[Block]("block"))
    models: Mapping[str, ModelSpec] = field(default_factory=_no_models)
    flags: Mapping[str, bool] = field(default_factory=dict[str, bool])
    tool_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """Second layer of tool configuration: tool id -> values, per environment (PC1-D4)."""
    flag_settings: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(
        default_factory=dict[str, Mapping[str, Mapping[str, Any]]]
    )
    """Third layer: flag -> tool id -> values that hold while the flag is on."""
    tool_flags: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tool id -> the flag that must be on for the tool to be bound at all (SO-11)."""
    rubrics: Mapping[str, Rubric] = field(default_factory=dict[str, Rubric])
    environment_surface: str | None = None
    """The surface an environment chooses over the deck's."""
    tools: DeckTools = field(default_factory=DeckTools)
    """The tools that come with the deck; a Kit opens them."""

    @property
    def surface(self) -> str:
        """Where this deck is used: in a chat, in a batch job."""
        return self.environment_surface or self.settings.surface

    def on(self, flag: str | None) -> bool:
        """Whether what hangs on a flag is there; no flag means always, an undeclared flag is off."""
        return flag is None or self.flags.get(flag, False)

    def tool_on(self, tool_id: str) -> bool:
        """Whether a tool may be bound in this environment."""
        return self.on(self.tool_flags.get(tool_id))

    def tools_on(self, card: AgentCard) -> tuple[str, ...]:
        """The tools a card gets here: those whose own flag is on, and the flag of the card's grant (SO-11)."""
        grants = card.tool_grants
        return tuple(t for t in card.tools if self.tool_on(t) and (t not in grants or self.on(grants[t].flag)))

    def active(self) -> tuple[AgentCard, ...]:
        """Every card that is to be bound: status active, flag on (PC2-S5.2a)."""
        return tuple(card for card in self.cards.values() if card.status == "active" and self.on(card.flag))

    def active_sub_agents(self, card: AgentCard) -> tuple[AgentCard, ...]:
        """The sub-agents of a card that are to be bound, in the card's order (PC2-S5.2a)."""
        subs = (self.cards[name] for name in card.sub_agents)
        return tuple(sub for sub in subs if sub.status == "active" and self.on(sub.flag))

    def policy(self, card: AgentCard) -> Policy:
        """The limits of a card: its own, else the deck's, else the kit's (decisions 16)."""
        layers = (LIMITS, self.settings.defaults, card.policy)
        return Policy(**{name: value for layer in layers for name, value in layer if value is not None})

    def tool_config(self, card: AgentCard, tool_id: str) -> dict[str, Any]:
        """What a tool is made with: card < settings of the environment < flags that are on (PC1-D4).

        A later layer replaces single values of an earlier one; among flags the one declared last wins.
        """
        config = {**card.tool_config.get(tool_id, {}), **self.tool_settings.get(tool_id, {})}
        for flag, tools in self.flag_settings.items():
            if self.on(flag):
                config |= tools.get(tool_id, {})
        return config
