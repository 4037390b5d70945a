"""What the simulated world says about a question: plain scans of its tables, sharing no code with the services that answer."""

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from math import hypot

from kit.bench.case import Fact
from kit.core.context import Principal
from kit.core.errors import DataError, UnknownId
from kit.worlds.consumer.rows import Offer, Receipt, Store
from kit.worlds.consumer.world import World, truth

Spellings = tuple[str, ...]


def fact(world: World, principal: Principal, agent: str, key: str) -> Fact:
    """Returns the fact a key such as `balance` or `offer:coffee` stands for, as it is for this user.

    Raises UnknownId for a key nobody knows, DataError where the world holds nothing of the kind for this user.
    """
    name, _, about = key.partition(":")
    if name not in FACTS:
        raise UnknownId("fact", name, FACTS)
    spellings = tuple(dict.fromkeys(FACTS[name](world, principal, about)))
    if not spellings:
        raise DataError(f"the world holds no {key!r} for {principal}: ask about something else")
    return Fact(agent=agent, name=key, any_of=spellings)


def date_spellings(iso: str) -> Spellings:
    """Returns the ways people write a date."""
    day = date.fromisoformat(iso)
    return f"{day.day} {day:%b}", f"{day.day} {day:%B}", f"{day:%b} {day.day}", f"{day:%B} {day.day}", iso


def _balance(world: World, who: Principal, _: str) -> Spellings:
    return (str(truth(world, who).points),)


def _pending(world: World, who: Principal, _: str) -> Spellings:
    points = truth(world, who).pending_points
    return (str(points),) if points else ()


def _earned(world: World, who: Principal, method: str) -> Spellings:
    rows = [e for entries in world.ledger.values() for e in entries if (e.tenant_id, e.user_id) == (who.tenant_id, who.user_id)]
    points = sum(entry.points for entry in rows if entry.method == method)
    return (str(points),) if points else ()


def _last_redemption(world: World, who: Principal, _: str) -> Spellings:
    redemptions = world.redemptions.get((who.tenant_id, who.user_id), ())
    newest = max((row.date for row in redemptions), default="")
    return tuple(world.rewards[row.reward_id].name for row in redemptions if row.date == newest)


def _cost(world: World, _: Principal, name: str) -> Spellings:
    return tuple(str(reward.points) for reward in world.rewards.values() if reward.name == name)


def _receipts(world: World, who: Principal, status: str | None = None) -> list[Receipt]:
    own = world.receipts.get((who.tenant_id, who.user_id), ())
    return sorted((row for row in own if status in (None, row.status)), key=lambda row: row.date, reverse=True)


def _totals(world: World, rows: Iterable[Receipt]) -> Spellings:
    return tuple(f"{row.total_cents / 100:.2f}" for row in rows)


def _newest_receipt(world: World, who: Principal, _: str) -> Spellings:
    return _totals(world, _receipts(world, who)[:1])


def _newest_store(world: World, who: Principal, _: str) -> Spellings:
    return tuple(world.retailer_of(row).name for row in _receipts(world, who)[:1])


def _count(world: World, who: Principal, _: str) -> Spellings:
    count = len(_receipts(world, who))
    return (f"{count} receipt",) if count else ()


def _of_status(status: str) -> Callable[[World, Principal, str], Spellings]:
    def spellings(world: World, who: Principal, _: str) -> Spellings:
        rows = _receipts(world, who, status)
        return (*_totals(world, rows), *(row.reason for row in rows if row.reason))

    return spellings


def _live(world: World, who: Principal, category: str) -> list[Offer]:
    return [world.offers[key] for key in sorted(truth(world, who, category or None).offer_ids)]


def _offer(world: World, who: Principal, category: str) -> Spellings:
    return tuple(world.products[offer.product_id].name for offer in _live(world, who, category))


def _cheapest(world: World, _: Principal, category: str) -> Spellings:
    rows = [product for product in world.products.values() if product.category == category]
    least = min((product.price_cents for product in rows), default=0)
    return tuple(product.name for product in rows if product.price_cents == least)


def _expires(world: World, who: Principal, category: str) -> Spellings:
    return tuple(spelt for offer in _live(world, who, category) for spelt in date_spellings(offer.ends))


def _next_expiring(world: World, who: Principal, _: str) -> Spellings:
    return date_spellings(min(offer.ends for offer in _live(world, who, "")))


def _minimum(world: World, who: Principal, category: str) -> Spellings:
    return tuple(f"Buy {offer.minimum}" for offer in _live(world, who, category))


def _limit(world: World, who: Principal, category: str) -> Spellings:
    return tuple(f"limit {offer.limit}" for offer in _live(world, who, category))


def _where(world: World, who: Principal, category: str) -> Spellings:
    offers = _live(world, who, category)
    return tuple(world.retailers[key].name for offer in offers for key in offer.retailer_ids) or ("any store",)


def _best_game(world: World, _: Principal, __: str) -> Spellings:
    worth = {game.name: sum(goal.points for goal in game.goals) for game in world.games.values() if game.ends >= world.as_of}
    return tuple(name for name, points in worth.items() if points == max(worth.values()))


def _progress(world: World, who: Principal, name: str) -> Spellings:
    rows = world.progress.get((who.tenant_id, who.user_id), ())
    return tuple(f"{world.games[row.game_id].steps} {row.step}" for row in rows if world.games[row.game_id].name == name)


def _goal(world: World, _: Principal, name: str) -> Spellings:
    return tuple(str(game.goals[-1].points) for game in world.games.values() if game.name == name)


def _ends(world: World, _: Principal, name: str) -> Spellings:
    return tuple(spelt for game in world.games.values() if game.name == name for spelt in date_spellings(game.ends))


def _eat(world: World, who: Principal, cuisine: str) -> Spellings:
    return tuple(row.name for row in world.restaurants.values() if row.cuisine == cuisine)


def _nearest_stores(world: World, who: Principal, kind: str) -> list[Store]:
    middle = world.meta.cities[world.users[who.tenant_id, who.user_id].city]
    of_kind = [store for store in world.stores.values() if world.retailers[store.retailer_id].kind == kind]

    def away(store: Store) -> float:
        return round(hypot(store.x - middle.x, store.y - middle.y), 1)

    least = min(map(away, of_kind), default=0.0)
    return [store for store in of_kind if away(store) == least]


def _nearest(world: World, who: Principal, kind: str) -> Spellings:
    return tuple(store.street for store in _nearest_stores(world, who, kind))


def _closes(world: World, who: Principal, kind: str) -> Spellings:
    hours = [store.closes for store in _nearest_stores(world, who, kind)]
    return tuple(spelt for hour in hours for spelt in (f"{hour}:00", f"{hour - 12} pm", f"{hour - 12}pm", f"{hour - 12} p.m"))


def _stores(world: World, _: Principal, name: str) -> Spellings:
    keys = {row.id for row in world.retailers.values() if row.name == name}
    count = sum(store.retailer_id in keys for store in world.stores.values())
    return (f"{count} store", f"{count} branch", f"{count} location") if count else ()


def _digital(world: World, _: Principal, name: str) -> Spellings:
    flags = [row.ereceipts for row in world.retailers.values() if row.name == name]
    return _DIGITAL[flags[0]] if flags else ()


_DIGITAL: Mapping[bool, Spellings] = {
    True: ("takes eReceipts", "takes e-receipts", "sends digital", "sends e-receipts", "sends eReceipts"),
    False: ("not take", "n't take", "not send", "n't send", "no digital", "no e-receipts", "no eReceipts"),
}

FACTS: Mapping[str, Callable[[World, Principal, str], Spellings]] = {
    "balance": _balance,
    "pending": _pending,
    "earned": _earned,
    "last_redemption": _last_redemption,
    "cost": _cost,
    "latest_receipt": _newest_receipt,
    "latest_store": _newest_store,
    "receipt_count": _count,
    "pending_receipt": _of_status("pending"),
    "rejected_receipt": _of_status("rejected"),
    "offer": _offer,
    "cheapest": _cheapest,
    "expires": _expires,
    "next_expiring": _next_expiring,
    "minimum": _minimum,
    "limit": _limit,
    "where": _where,
    "best_game": _best_game,
    "progress": _progress,
    "goal": _goal,
    "ends": _ends,
    "eat": _eat,
    "nearest": _nearest,
    "closes": _closes,
    "stores": _stores,
    "digital": _digital,
}
"""Key -> the spellings of what is true; any one of them will do."""
