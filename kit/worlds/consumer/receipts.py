"""A user's receipts: the list, one in full, and one against the offers it met or missed."""

from collections import Counter
from typing import Any

from kit.core.context import Principal
from kit.worlds.consumer import talk
from kit.worlds.consumer.rows import Offer, Receipt
from kit.worlds.consumer.shopping import offer_payload, page
from kit.worlds.consumer.world import World, who
from kit.worlds.service.parameters import Parameters
from kit.worlds.service.search import Index, SearchResult

Payload = dict[str, Any]
_STATUS_WORDS = {
    "accepted": "accepted approved",
    "pending": "pending processing waiting review",
    "rejected": "rejected declined denied failed scan scanned scanning blurry",
}


def receipts(world: World, principal: Principal, parameters: Parameters) -> Payload:
    """The user's receipts, newest first, with how many there are of each status."""
    own = _own(world, principal)
    counts = Counter(receipt.status for receipt in own)
    result = _search(world, own, parameters)
    newest = result.newest(parameters.limit, lambda receipt: receipt.date)
    rows = [receipt_payload(world, receipt) for receipt in newest]
    return {**page("receipts", rows, result), "counts": dict(counts)}


def receipt(world: World, principal: Principal, parameters: Parameters) -> Payload:
    """One receipt with every line; the newest that fits."""
    receipt, match, topic = _pick(world, principal, parameters)
    return {"receipt": _in_full(world, receipt), "match": match, "topic": topic}


def matched(world: World, principal: Principal, parameters: Parameters) -> Payload:
    """One receipt, the offers it met, and the offers on what was bought that it missed, each with the reason."""
    receipt, match, topic = _pick(world, principal, parameters)
    if receipt is None:
        return {"receipt": None, "offers": [], "missed": [], "match": match, "topic": topic}
    matches = [world.offers[hit.offer_id] for hit in receipt.matches]
    quantities = Counter({line.product_id: 0 for line in receipt.lines})
    for line in receipt.lines:
        quantities[line.product_id] += line.quantity
    near_misses = [
        {"offer": offer_payload(world, offer), "why": why}
        for offer in world.offers.values()
        if offer.tenant_id == receipt.tenant_id
        and offer.product_id in quantities
        and offer not in matches
        if (why := _why_missed(world, receipt, offer, quantities[offer.product_id]))
    ]
    return {
        "receipt": _in_full(world, receipt),
        "offers": [offer_payload(world, offer) for offer in matches],
        "missed": near_misses[: parameters.limit],
        "match": match,
        "topic": topic,
    }


def receipt_payload(world: World, receipt: Receipt) -> Payload:
    """A receipt as it leaves the service: names instead of ids."""
    return {
        "id": receipt.id,
        "retailer": world.retailer_of(receipt).name,
        "date": receipt.date,
        "status": receipt.status,
        "reason": receipt.reason,
        "total_cents": receipt.total_cents,
        "points": receipt.points,
        "items": sum(line.quantity for line in receipt.lines),
    }


def _in_full(world: World, receipt: Receipt | None) -> Payload | None:
    if receipt is None:
        return None
    lines = [
        {
            "name": world.products[line.product_id].name
            if line.product_id
            else line.text.capitalize(),
            "quantity": line.quantity,
            "price_cents": line.price_cents,
        }
        for line in receipt.lines
    ]
    return {**receipt_payload(world, receipt), "lines": lines}


def _why_missed(world: World, receipt: Receipt, offer: Offer, quantity: int) -> str | None:
    """The first condition that did not hold; None for an offer that was long over or not yet there."""
    if not offer.starts <= receipt.date <= offer.ends:
        return None
    if offer.retailer_ids and world.retailer_of(receipt).id not in offer.retailer_ids:
        return "another store"
    if quantity < offer.minimum:
        return f"only {quantity} of {offer.minimum} bought"
    if receipt.status == "rejected":
        return "receipt rejected"
    return "limit used up"


def _own(world: World, principal: Principal) -> list[Receipt]:
    return sorted(
        world.receipts.get(who(principal), ()), key=lambda receipt: receipt.date, reverse=True
    )


def _search(world: World, own: list[Receipt], parameters: Parameters) -> SearchResult[Receipt]:
    if parameters.status:
        own = [receipt for receipt in own if receipt.status == parameters.status]
    return Index(own, lambda receipt: _words(world, receipt), talk=talk.RECEIPTS).search(
        parameters.text
    )


def _pick(
    world: World, principal: Principal, parameters: Parameters
) -> tuple[Receipt | None, str, str]:
    result = _search(world, _own(world, principal), parameters)
    return (
        max(result.rows, key=lambda receipt: receipt.date, default=None),
        result.match,
        result.topic,
    )


def _words(world: World, receipt: Receipt) -> list[tuple[float, str]]:
    names = [world.products[line.product_id] for line in receipt.lines if line.product_id]
    return [
        (9.0, receipt.id),
        (4.0, _STATUS_WORDS[receipt.status]),
        (3.0, world.retailer_of(receipt).name),
        (
            1.0,
            " ".join(
                f"{product.name} {world.categories[product.category].name}" for product in names
            ),
        ),
    ]
