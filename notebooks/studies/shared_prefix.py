"""How much of two prompts a provider's cache can serve for both."""

from kit.compose.prompts import Prompt


def shared_prefix_ratio(a: Prompt, b: Prompt) -> float:
    """How much of two prompts is the same from the start: shared characters over the longer one's length, 0 to 1."""
    one, other = a.text, b.text
    common = next(
        (at for at, (x, y) in enumerate(zip(one, other, strict=False)) if x != y),
        min(len(one), len(other)),
    )
    return common / max(len(one), len(other), 1)
