"""Restaurants, retailers and their stores, by distance from where the user is."""

from collections.abc import Iterable
from dataclasses import replace
from math import hypot
from typing import Any

from kit.core.context import Principal
from kit.worlds.consumer import talk
from kit.worlds.consumer.rows import Restaurant, RestaurantOffer, Retailer, Store
from kit.worlds.consumer.shopping import page
from kit.worlds.consumer.world import World, who
from kit.worlds.service.parameters import Parameters
from kit.worlds.service.search import Index, SearchResult, tokens

Payload = dict[str, Any]


def restaurants(world: World, principal: Principal, parameters: Parameters) -> Payload:
    """Restaurants, best fit first, then nearest."""
    city = city_of(world, principal, parameters)
    by_distance = sorted(
        world.restaurants.values(), key=lambda row: (miles(world, city, row), row.id)
    )
    result = Index(
        by_distance,
        lambda row: [(3.0, row.cuisine), (3.0, row.name), (4.0, row.id)],
        talk=talk.RESTAURANTS,
    ).search(_without_city(parameters, city))
    pays = {offer.restaurant: offer.points for offer in _live(world, principal)}
    rows = [
        {
            "id": row.id,
            "name": row.name,
            "cuisine": row.cuisine,
            "address": f"{row.street}, {row.city}",
            "miles": miles(world, city, row),
            "price": "$" * row.price,
            "rating": row.rating,
            "points": pays.get(row.name, 0),
        }
        for row in result.first(parameters.limit)
    ]
    return {**page("restaurants", rows, result), "city": city}


def restaurant_offers(world: World, principal: Principal, parameters: Parameters) -> Payload:
    """Live restaurant offers, most points first."""
    live = sorted(_live(world, principal), key=lambda offer: (-offer.points, offer.id))
    result = Index(
        live,
        lambda offer: [(3.0, offer.cuisine), (3.0, offer.restaurant), (4.0, offer.id)],
        talk=talk.RESTAURANTS,
    ).search(parameters.text)
    rows = [
        {
            "id": offer.id,
            "title": f"{offer.points:,} points at {offer.restaurant}",
            "restaurant": offer.restaurant,
            "cuisine": offer.cuisine,
            "points": offer.points,
            "minimum_cents": offer.minimum_cents,
            "starts": offer.starts,
            "ends": offer.ends,
        }
        for offer in result.first(parameters.limit)
    ]
    return page("offers", rows, result)


def retailers_of(world: World, principal: Principal, parameters: Parameters) -> Payload:
    """The retailer that fits best, or each of several that were named; three in place of one that is not known; where
    none is named the one the user shops at most."""
    result = _named(world, parameters.text)
    city = city_of(world, principal, parameters)
    if result.match == "named":
        retailers = result.first(1)
    elif result.match == "closest":
        retailers = result.first(3)
    else:
        retailers = (_usual(world, principal) or result.rows[0],)
    rows = [_retailer_payload(world, principal, city, retailer) for retailer in retailers]
    return page("retailers", rows, result)


def _retailer_payload(world: World, principal: Principal, city: str, retailer: Retailer) -> Payload:
    stores = [store for store in world.stores.values() if store.retailer_id == retailer.id]
    nearest = min(stores, key=lambda store: (miles(world, city, store), store.id))
    live = [
        offer
        for offer in world.offer_index[principal.tenant_id].rows
        if retailer.id in offer.retailer_ids
    ]
    return {
        "id": retailer.id,
        "name": retailer.name,
        "kind": retailer.kind,
        "ereceipts": retailer.ereceipts,
        "stores": len(stores),
        "offers": len(live),
        "nearest": _store_payload(world, city, nearest),
    }


def stores(world: World, principal: Principal, parameters: Parameters) -> Payload:
    """Stores by distance; of the retailers, kinds of retailer or goods asked for."""
    city = city_of(world, principal, parameters)
    result = _index(world.retailers.values(), world).search(_without_city(parameters, city))
    keys = {row.id for row in result.rows}
    near = [store for store in world.stores.values() if store.retailer_id in keys]
    near.sort(key=lambda store: (miles(world, city, store), store.id))
    if result.kinds > 1:
        # The nearest store of each retailer that was named comes first.
        nearest = {store.retailer_id: store for store in reversed(near)}
        near = list(dict.fromkeys([*nearest.values(), *near]))
    rows = [_store_payload(world, city, store) for store in near[: parameters.limit]]
    return {**page("stores", rows, result), "found": len(near), "city": city}


def city_of(world: World, principal: Principal, parameters: Parameters) -> str:
    """The first city the request names, else the user's own."""
    mentioned_words = set(tokens(f"{parameters.location} {parameters.query}"))
    for city in world.meta.cities:
        if mentioned_words >= set(tokens(city)):
            return city
    user = world.users.get(who(principal))
    if user:
        return user.city
    return next(iter(world.meta.cities))


def miles(world: World, city: str, place: Restaurant | Store) -> float:
    """Straight-line distance from the middle of a city."""
    middle = world.meta.cities[city]
    return round(hypot(place.x - middle.x, place.y - middle.y), 1)


def _without_city(parameters: Parameters, city: str) -> str:
    city_words = set(tokens(city))
    return " ".join(word for word in parameters.text.split() if not city_words & set(tokens(word)))


def _live(world: World, principal: Principal) -> list[RestaurantOffer]:
    offers = world.restaurant_offers.values()
    return [
        offer
        for offer in offers
        if offer.tenant_id == principal.tenant_id and offer.starts <= world.as_of <= offer.ends
    ]


def _named(world: World, text: str) -> SearchResult[Retailer]:
    """The retailers that are meant. One that shares a word with a name, as Bulk Harbor does with "Fresh Harbor Market",
    is another one."""
    index = _index(world.retailers.values(), world)
    result = index.search(text)
    if result.match != "named" or result.kinds > 1 or not result.rows:
        return result
    first = result.rows[0]
    unmet = index.unmet(text, first)
    if not unmet or set(tokens(first.name)) <= set(tokens(text)):
        return result
    return replace(result, match="closest", topic=unmet)


def _usual(world: World, principal: Principal) -> Retailer | None:
    visits: dict[str, int] = {}
    for receipt in world.receipts.get(who(principal), ()):
        key = world.stores[receipt.store_id].retailer_id
        visits[key] = visits.get(key, 0) + 1
    if visits:
        return world.retailers[max(visits, key=lambda key: (visits[key], key))]
    return None


def _index(retailers: Iterable[Retailer], world: World) -> Index[Retailer]:
    return Index(
        retailers,
        lambda row: [(4.0, row.name), (2.0, _KINDS[row.kind]), (4.0, row.id)],
        talk=talk.STORES,
    )


_KINDS = {
    "grocery": "grocery groceries supermarket food",
    "club": "club warehouse bulk membership",
    "pharmacy": "pharmacy drugstore drug medicine",
    "pet": "pet dog cat animal",
    "home": "home hardware garden improvement",
    "electronics": "electronics computer phone",
    "sport": "sport sports shoes outdoor",
}


def _store_payload(world: World, city: str, store: Store) -> Payload:
    owner = world.retailers[store.retailer_id]
    return {
        "id": store.id,
        "name": owner.name,
        "kind": owner.kind,
        "address": f"{store.street}, {store.city}",
        "miles": miles(world, city, store),
        "opens": store.opens,
        "closes": store.closes,
    }
