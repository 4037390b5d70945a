"""The registry of the context service: (domain type, enricher id) -> what serves it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kit.core.context import Principal
from kit.worlds.consumer import articles, games, places, points, receipts, shopping
from kit.worlds.consumer.world import World
from kit.worlds.manga import titles
from kit.worlds.service.parameters import Asking

VERSION = "1.2.0"
"""Semantic version of every payload served here."""


@dataclass(frozen=True, slots=True)
class Enricher:
    """How one kind of data is looked up."""

    serve: Callable[[World, Principal, Asking], dict[str, Any]]
    seconds: float
    """How long it takes at latency 1."""
    personal: bool = True
    """Whether it answers only for a user the world knows."""


ENRICHERS: Mapping[tuple[str, str], Enricher] = {
    ("shop", "offers"): Enricher(shopping.offers, 0.38, personal=False),
    ("shop", "products"): Enricher(shopping.products, 0.34, personal=False),
    ("shop", "purchases"): Enricher(shopping.purchases, 0.42),
    ("support", "articles"): Enricher(articles.articles, 0.22, personal=False),
    ("rewards", "balance"): Enricher(points.balance, 0.16),
    ("rewards", "redemptions"): Enricher(points.redemptions, 0.24),
    ("rewards", "quote"): Enricher(points.quote, 0.28),
    ("rewards", "by_method"): Enricher(points.by_method, 0.31),
    ("ereceipts", "receipts"): Enricher(receipts.receipts, 0.27),
    ("ereceipts", "match"): Enricher(receipts.matched, 0.45),
    ("ereceipts", "receipt"): Enricher(receipts.receipt, 0.2),
    ("play", "games"): Enricher(games.games, 0.26, personal=False),
    ("play", "progress"): Enricher(games.progress, 0.23),
    ("offer_details", "terms"): Enricher(shopping.offers, 0.19, personal=False),
    ("offer_details", "expiring"): Enricher(shopping.expiring, 0.29, personal=False),
    ("restaurants", "restaurants"): Enricher(places.restaurants, 0.4, personal=False),
    ("restaurants", "offers"): Enricher(places.restaurant_offers, 0.33, personal=False),
    ("retailer_context", "retailer"): Enricher(places.retailer, 0.25, personal=False),
    ("retailer_context", "stores"): Enricher(places.stores, 0.36, personal=False),
    ("manga", "catalog"): Enricher(titles.catalog, 0.18, personal=False),
    ("manga", "prefs"): Enricher(titles.prefs, 0.22),
    ("manga", "sentiment"): Enricher(titles.sentiment, 0.26, personal=False),
    ("manga", "links"): Enricher(titles.links, 0.2, personal=False),
    ("manga", "policy"): Enricher(titles.policy, 0.16, personal=False),
}
