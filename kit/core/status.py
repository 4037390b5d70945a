"""The status vocabulary and its lifecycle: which identifiers a sub-agent may say, since when, and
what took their place."""

from collections.abc import Mapping

from kit.core.value import Value


class Term(Value):
    """One identifier of the vocabulary."""

    since: str = "0.1"
    """Version of the deck that added it."""
    deprecated: str | None = None
    """Version from which nobody should say it any more; it is still understood until it is taken out."""
    instead: str | None = None
    """The term whose words a person reads in its place."""


OWN: Mapping[str, Term] = {"thinking_it_through": Term(), "preparing_results": Term()}
"""The runtime's own identifiers; a deck adds those of its tools under `statuses:`."""

UNKNOWN = "unknown"
"""Stands in every event for a status outside the vocabulary: what was sent may be prose, or worse,
and is kept nowhere."""


def current_term(status: str, vocabulary: Mapping[str, Term]) -> str | None:
    """The term to word for a status: itself, or what took its place; None for one outside the vocabulary."""
    term = vocabulary.get(status)
    if term is None:
        return None
    if term.instead in vocabulary:
        return term.instead
    return status
