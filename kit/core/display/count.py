"""A count with its noun, in the singular where it is one; and several names as one phrase."""

from collections.abc import Sequence


def many(count: int, noun: str) -> str:
    """Returns the count and its noun: `1 turn`, `2,000 turns`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def enumeration(names: Sequence[str], joiner: str = "and") -> str:
    """Returns names as one phrase: `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {joiner} {names[-1]}"
