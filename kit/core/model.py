"""What the kit knows about a model before it is built: one entry of models.yaml."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from kit.core.card import AgentCard
from kit.core.simulation import Law
from kit.core.value import Value

RoutingMode = Literal["native", "json_schema"]


class Published(Value):
    """A figure that somebody else measured, to stand beside ours."""

    what: str
    value: float
    unit: str = ""
    of: int | None = None
    """Sample size; None where the source gives none."""
    source: str
    prompt: str = "plain"
    """Which of the shipped prompts it was measured with, as a grid names them."""
    note: str = ""


class ModelSpec(Value):
    """A model by key. Prices in US dollars per million tokens; None where no price is known."""

    key: str
    provider: Literal["offline", "openai", "simulated"]
    name: str = ""
    """The provider's own name; empty means the key."""
    base_url: str | None = None
    """An OpenAI-compatible endpoint; None takes the provider's own, or the one in the settings."""
    api: Literal["chat", "responses"] = "chat"
    effort: Literal["none", "minimal", "low", "medium", "high"] | None = None
    context_window: int = Field(default=128_000, gt=0)
    """Tokens."""
    price_in: float | None = None
    price_out: float | None = None
    routing: RoutingMode = "native"
    """How the model calls tools: by its own tool calls, or by an answer bound to a JSON schema."""
    concurrent_tool_calls: bool = True
    """Whether one reply may hold several tool calls; an orchestrator needs it."""
    fallback: str | None = None
    """Key of the model that takes over where this one fails and the card names none."""
    law: Law | None = None
    """How a simulated model behaves; its draws are seeded."""
    seed: int = 0
    published: tuple[Published, ...] = ()
    note: str = ""

    @model_validator(mode="after")
    def _says_what_it_is(self) -> "ModelSpec":
        if self.provider == "simulated" and "simulated" not in self.key:
            raise ValueError("the key of a simulated model must hold the word 'simulated': it is what people read")
        if (self.law is not None) != (self.provider == "simulated"):
            raise ValueError("a simulated model needs a law, and no other model may have one")
        return self

    def price(self, read: int, wrote: int) -> float | None:
        """Dollars for so many tokens in and out, or None where a price is not known."""
        if self.price_in is None or self.price_out is None:
            return None
        return (read * self.price_in + wrote * self.price_out) / 1e6


OFFLINE = ModelSpec(key="offline", provider="offline", price_in=0.0, price_out=0.0, note="offline stand-in, not an LLM")
"""Always known: the embedded stand-in, with no key and no download."""


def fallback_of(card: AgentCard, models: Mapping[str, ModelSpec]) -> str | None:
    """Key of the model that a card turns to when its own fails: the card's, else what models.yaml names for the card's model."""
    spec = models.get(card.model)
    return card.fallback_model or (spec.fallback if spec else None)
