"""How many of something there are."""


def many(count: int, noun: str) -> str:
    """The count and its noun: `1 turn`, `2,000 turns`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
