"""The enrichers of the consumer world."""

from kit.core.context import Principal
from kit.worlds.consumer import articles, games, places, points, receipts, shopping
from kit.worlds.consumer.world import World, who
from kit.worlds.service.enrichers import Catalogue, Enricher, Enrichers

ENRICHERS: Enrichers = {
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
    ("retailer_context", "retailer"): Enricher(places.retailers_of, 0.25, personal=False),
    ("retailer_context", "stores"): Enricher(places.stores, 0.36, personal=False),
}


def catalogue(world: World) -> Catalogue:
    """What the context service serves of this world; its indexes are built now, so that no first
    question waits for them."""
    tenants = frozenset(world.offer_index)
    _ = (world.product_index, world.article_index)

    def knows(principal: Principal, personal: bool) -> bool:
        if personal:
            return who(principal) in world.users
        return principal.tenant_id in tenants

    return Catalogue(world, ENRICHERS, knows)
