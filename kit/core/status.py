"""The status vocabulary and its lifecycle: which identifiers a sub-agent may say, since when, and what took their place."""

from collections.abc import Mapping

from kit.core.value import Value


class Term(Value):
    """One identifier of the vocabulary."""

    since: str = "0.1"
    """Version of the kit that added it."""
    deprecated: str | None = None
    """Version from which nobody should say it any more; it is still understood until it is taken out."""
    instead: str | None = None
    """The term whose words a person reads in its place."""


VOCABULARY: Mapping[str, Term] = {
    "thinking_it_through": Term(),
    "searching_offers": Term(),
    "searching_catalog": Term(),
    "matching_receipt": Term(),
    "looking_up_purchase_history": Term(),
    "looking_up_points_balance": Term(),
    "calculating_redemption": Term(),
    "reading_help_articles": Term(),
    "asking_support": Term(),
    "looking_up_games": Term(),
    "looking_up_offer_terms": Term(),
    "finding_restaurants": Term(),
    "looking_up_retailer": Term(),
    "preparing_results": Term(),
    "looking_up_tastes": Term(),
    "reading_reviews": Term(),
    "checking_spoiler_rules": Term(),
}
"""Identifiers, never prose. To add one is a line here; to retire one is `deprecated`, then `instead`, then no line."""


def current_term(status: str, vocabulary: Mapping[str, Term] = VOCABULARY) -> str | None:
    """Returns the term in use for a status: itself or its successor; None for a status outside the vocabulary."""
    term = vocabulary.get(status)
    if term is None:
        return None
    return term.instead if term.instead in vocabulary else status
