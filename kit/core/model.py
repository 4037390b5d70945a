"""What the kit knows about a model before it is built: one entry of models.yaml."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from kit.core.card import AgentCard
from kit.core.limits import Data
from kit.core.simulation import Law
from kit.core.value import Value

RoutingMode = Literal["native", "json_schema"]
EmbedderName = Literal["words", "minilm"]
"""What the stand-in makes vectors by: of single words, or of whole sentences (the extra `router`)."""


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


class ModelParams(Value):
    """What every request to a model says beside the messages; what is None or empty is not sent."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = None
    extra_body: Data = {}
    """Fields of the request's body that this API does not know, such as {"top_k": 20}."""
    headers: dict[str, str] = {}

    @field_validator("headers")
    @classmethod
    def _holds_no_key(cls, headers: dict[str, str]) -> dict[str, str]:
        # A models.yaml is committed and shown; the environment is neither.
        for name in headers:
            if name.lower() in ("authorization", "x-api-key", "api-key", "cookie"):
                raise ValueError(
                    f"the header {name!r} carries a key, and files are read by many: name its variable in api_key_env"
                )
        return headers

    def options(self) -> dict[str, Any]:
        """Those that are given, under the names that LangChain's chat models have for them."""
        options = self.model_dump(exclude_defaults=True)
        if self.headers:
            options["default_headers"] = options.pop("headers")
        return options


class RateLimits(Value):
    """What a provider allows in a minute; None where nobody says."""

    requests: int | None = Field(default=None, gt=0)
    tokens: int | None = Field(default=None, gt=0)


class ModelSpec(Value):
    """A model by key. Prices in US dollars per million tokens; None where no price is known."""

    key: str
    provider: Literal["offline", "openai", "langchain", "python", "simulated"]
    name: str = ""
    """The provider's own name; empty means the key."""
    model: str = ""
    """With `provider: langchain`: what `init_chat_model` takes, such as `anthropic:claude-haiku-4-5`."""
    factory: str = ""
    """With `provider: python`: the code that makes the model, `package.module:function` or `./file.py:function`."""
    base_url: str | None = None
    """An endpoint of its own; None takes the provider's, or the one in the settings."""
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Z][A-Z0-9_]*_API_KEY$")
    """The environment variable with its key; None: the provider's own."""
    params: ModelParams = ModelParams()
    stream: bool = True
    """False for an endpoint that answers whole replies only."""
    api: Literal["chat", "responses"] = "chat"
    effort: Literal["none", "minimal", "low", "medium", "high"] | None = None
    context_window: int = Field(default=128_000, gt=0)
    """Tokens."""
    price_in: float | None = None
    price_out: float | None = None
    price_cached: float | None = None
    """Of input that the provider's cache held; None: as other input."""
    price_reasoning: float | None = None
    """Of output that nobody reads; None: as other output."""
    limits: RateLimits = RateLimits()
    routing: RoutingMode = "native"
    """How the model calls tools: by its own tool calls, or by an answer bound to a JSON schema."""
    concurrent_tool_calls: bool = True
    """Whether one reply may hold several tool calls; an orchestrator needs it."""
    pictures: bool = True
    """Whether the model behind the endpoint can look at pictures."""
    fallback: str | None = None
    """Key of the model that takes over where this one fails and the card names none."""
    embedder: EmbedderName = "words"
    """By whose vectors the stand-in compares texts."""
    law: Law | None = None
    """How a simulated model behaves; its draws are seeded."""
    seed: int = 0
    published: tuple[Published, ...] = ()
    note: str = ""

    @model_validator(mode="after")
    def _says_what_it_is(self) -> "ModelSpec":
        if self.provider == "simulated" and "simulated" not in self.key:
            raise ValueError(
                "the key of a simulated model must hold the word 'simulated': it is what people read"
            )
        if (self.law is not None) != (self.provider == "simulated"):
            raise ValueError("a simulated model needs a law, and no other model may have one")
        for field, provider in (("model", "langchain"), ("factory", "python")):
            if bool(getattr(self, field)) != (self.provider == provider):
                fault = f"needs `{field}`, and no other provider has it"
                raise ValueError(f"`provider: {provider}` {fault}")
        return self

    @property
    def is_self_contained(self) -> bool:
        """Whether it is a real model whose entry says where it is: OPENAI_API_KEY and
        OPENAI_BASE_URL have no part in it."""
        return self.provider in ("langchain", "python") or bool(self.base_url or self.api_key_env)

    @property
    def sees_pictures(self) -> bool:
        """Whether it looks at the pictures of a message; the stand-in and simulated models have no eyes."""
        return self.pictures and self.provider not in ("offline", "simulated")

    def price(self, read: int, wrote: int, cached: int = 0, reasoning: int = 0) -> float | None:
        """Dollars for so many tokens in and out, or None where a price is not known.

        `cached` are among those read, `reasoning` among those written.
        """
        if self.price_in is None or self.price_out is None:
            return None
        dollars = read * self.price_in + wrote * self.price_out
        if cached and self.price_cached is not None:
            dollars += cached * (self.price_cached - self.price_in)
        if reasoning and self.price_reasoning is not None:
            dollars += reasoning * (self.price_reasoning - self.price_out)
        return dollars / 1e6


OFFLINE = ModelSpec(
    key="offline",
    provider="offline",
    price_in=0.0,
    price_out=0.0,
    note="offline stand-in, not an LLM",
)
"""Always known: the embedded stand-in, with no key and no download."""


def fallback_of(card: AgentCard, models: Mapping[str, ModelSpec]) -> str | None:
    """Key of the model that a card turns to when its own fails: the card's, else what models.yaml
    names for the card's model."""
    spec = models.get(card.model)
    return card.fallback_model or (spec.fallback if spec else None)
