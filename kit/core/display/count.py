"""A count with its noun, in the singular where it is one."""


def many(count: int, noun: str) -> str:
    """Returns the count and its noun: `1 turn`, `2,000 turns`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
