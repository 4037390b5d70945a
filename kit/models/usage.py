"""What a call of a model has cost: as its provider counts, or estimated where nobody does."""

from langchain_core.messages import AIMessage

from kit.core.model import ModelSpec
from kit.core.outcome import Usage
from kit.core.value import builder

_new_usage = builder(Usage)
CHARACTERS = 4
"""Of a token, where nobody counted."""
MOST_TOKENS = 10**9
"""Tokens that a model may report for one call; what else it says of its usage is not believed."""


def usage_of(message: AIMessage, spec: ModelSpec, size: int, text: str) -> Usage:
    """Returns what a whole reply cost; `size` is the estimate of what was read, `text` what was
    written beside calls."""
    counts = message.usage_metadata
    if counts is None or not all(
        0 <= counts[name] < MOST_TOKENS for name in ("input_tokens", "output_tokens")
    ):
        wrote = len(text) + (len(str(message.tool_calls)) if message.tool_calls else 0)
        return estimate(spec, size, wrote)
    read = counts["input_tokens"]
    wrote = counts["output_tokens"]
    cached = counts.get("input_token_details", {}).get("cache_read", 0) or 0
    reasoning = counts.get("output_token_details", {}).get("reasoning", 0) or 0
    return _bill(spec, read, wrote, min(max(cached, 0), read), min(max(reasoning, 0), wrote))


def estimate(spec: ModelSpec, size: int, characters: int) -> Usage:
    """Returns what a call costs that reads so many tokens and writes so many characters."""
    return _bill(spec, size, -(-characters // CHARACTERS), estimated=True)


def _bill(
    spec: ModelSpec,
    read: int,
    wrote: int,
    cached: int = 0,
    reasoning: int = 0,
    *,
    estimated: bool = False,
) -> Usage:
    return _new_usage(
        input_tokens=read,
        output_tokens=wrote,
        cached_tokens=cached,
        model_calls=1,
        cost=spec.price(read, wrote, cached, reasoning),
        estimated=estimated,
    )
