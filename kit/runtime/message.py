"""A user's message, made safe to pass on: control characters out, and a plain word when there is nothing to work with."""

import re
import unicodedata

LONGEST = 16_000
"""Characters a message may have; longer ones are declined in words, never cut silently."""
_SURROGATES = re.compile("[\ud800-\udfff]")


def clean(message: str) -> str:
    """The message without control and surrogate characters; line breaks and tabs stay."""
    kept = (c for c in _SURROGATES.sub("", message) if c in "\n\t" or unicodedata.category(c) != "Cc")
    return "".join(kept).strip()


def decline(message: str) -> str | None:
    """What to answer, without any model, to a cleaned message that cannot be worked with; None when it can."""
    if not message:
        return "I didn't catch a question there. What would you like to know?"
    if len(message) > LONGEST:
        return (
            f"That message is too long for me: it has {len(message):,} characters and I can read {LONGEST:,}. "
            "Could you send the part that matters most?"
        )
    return None
