"""Offers, products and what a user bought."""

from datetime import date, timedelta
from typing import Any

from kit.core.context import Principal
from kit.worlds.consumer import talk
from kit.worlds.consumer.rows import Line, Offer, Receipt
from kit.worlds.consumer.world import World, who
from kit.worlds.service.parameters import Parameters
from kit.worlds.service.search import Index, SearchResult

Payload = dict[str, Any]


def page(key: str, rows: list[Payload], result: SearchResult[Any]) -> Payload:
    """A list of rows, with what was searched for and how well it fits."""
    return {
        key: rows,
        "match": result.match,
        "topic": result.topic,
        "found": len(result.rows),
        "not_found": result.not_found,
        "left_out": result.left_out,
    }


def offer_payload(world: World, offer: Offer) -> Payload:
    """An offer as it leaves the service: names instead of ids."""
    product = world.products[offer.product_id]
    return {
        "id": offer.id,
        "title": f"{offer.points:,} points on {product.name}",
        "product": product.name,
        "brand": offer.brand,
        "category": world.categories[offer.category].name,
        "points": offer.points,
        "minimum": offer.minimum,
        "limit": offer.limit,
        "retailers": [world.retailers[key].name for key in offer.retailer_ids],
        "starts": offer.starts,
        "ends": offer.ends,
        "terms": offer.terms,
    }


def offers(world: World, principal: Principal, parameters: Parameters) -> Payload:
    """Live offers of the tenant, best match first, then most points. The terms are offer_details' own."""
    result = world.offer_index[principal.tenant_id].search(parameters.text)
    return page(
        "offers", [offer_payload(world, offer) for offer in result.first(parameters.limit)], result
    )


def expiring(world: World, principal: Principal, parameters: Parameters) -> Payload:
    """Live offers that end within some days, soonest first; the soonest of all when none does."""
    result = world.offer_index[principal.tenant_id].search(parameters.text)
    last = (date.fromisoformat(world.as_of) + timedelta(days=parameters.within_days)).isoformat()
    by_end = sorted(result.rows, key=lambda offer: (offer.ends, -offer.points, offer.id))
    ending = [offer for offer in by_end if offer.ends <= last]
    offers = (ending or by_end)[: parameters.limit]
    return {
        **page("offers", [offer_payload(world, offer) for offer in offers], result),
        "within_days": parameters.within_days,
        "ending": len(ending),
    }


def products(world: World, principal: Principal, parameters: Parameters) -> Payload:
    """Products of the catalogue, cheapest first, with what the best live offer on each pays."""
    result = world.product_index.search(parameters.text)
    pays = {
        offer.product_id: offer.points
        for offer in reversed(world.offer_index[principal.tenant_id].rows)
    }
    rows = [
        {
            "id": product.id,
            "name": product.name,
            "brand": product.brand,
            "category": world.categories[product.category].name,
            "price_cents": product.price_cents,
            "points": pays.get(product.id, 0),
        }
        for product in result.first(parameters.limit)
    ]
    return page("products", rows, result)


def purchases(world: World, principal: Principal, parameters: Parameters) -> Payload:
    """Lines of the user's accepted and pending receipts, newest first."""
    purchases = [
        (receipt, line)
        for receipt in sorted(
            world.receipts.get(who(principal), ()), key=lambda receipt: receipt.date, reverse=True
        )
        if receipt.status != "rejected"
        for line in receipt.lines
        if line.product_id
    ]
    result = Index(
        purchases, lambda pair: _purchase_words(world, *pair), talk=talk.PURCHASES
    ).search(parameters.text)
    newest = result.newest(parameters.limit, lambda pair: pair[0].date)
    return {
        **page("purchases", [_purchase(world, *pair) for pair in newest], result),
        "total_cents": sum(line.price_cents * line.quantity for _, line in result.rows),
        "quantity": sum(line.quantity for _, line in result.rows),
    }


def _purchase(world: World, receipt: Receipt, line: Line) -> Payload:
    product = world.products[line.product_id or ""]
    return {
        "id": product.id,
        "name": product.name,
        "brand": product.brand,
        "category": world.categories[product.category].name,
        "price_cents": line.price_cents,
        "quantity": line.quantity,
        "date": receipt.date,
        "retailer": world.retailer_of(receipt).name,
        "receipt_id": receipt.id,
    }


def _purchase_words(world: World, receipt: Receipt, line: Line) -> list[tuple[float, str]]:
    return [
        *world.product_words(world.products[line.product_id or ""]),
        (1.0, world.retailer_of(receipt).name),
    ]
