"""What the simulated world says about a question: plain scans of its tables, sharing no code with
the services that answer."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from math import hypot

from kit.bench.case import Fact
from kit.core.context import Principal
from kit.core.errors import DataError, UnknownId
from kit.worlds.consumer.rows import Game, Offer, Receipt, Store
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
    return (
        f"{day.day} {day:%b}",
        f"{day.day} {day:%B}",
        f"{day:%b} {day.day}",
        f"{day:%B} {day.day}",
        iso,
    )


def _points_earned(world: World, who: Principal, method: str) -> int:
    entries = [
        row
        for rows in world.ledger.values()
        for row in rows
        if (row.tenant_id, row.user_id) == (who.tenant_id, who.user_id)
    ]
    return sum(entry.points for entry in entries if entry.method == method)


def _last_redemption(world: World, who: Principal, _: str) -> Spellings:
    redemptions = world.redemptions.get((who.tenant_id, who.user_id), ())
    newest = max((row.date for row in redemptions), default="")
    return tuple(world.rewards[row.reward_id].name for row in redemptions if row.date == newest)


def _receipts(world: World, who: Principal, status: str | None = None) -> list[Receipt]:
    """The user's receipts, of one status or of any, newest first."""
    own = world.receipts.get((who.tenant_id, who.user_id), ())
    return sorted(
        (row for row in own if status in (None, row.status)), key=lambda row: row.date, reverse=True
    )


def _totals(rows: Iterable[Receipt]) -> Spellings:
    return tuple(f"{row.total_cents / 100:.2f}" for row in rows)


def _totals_and_reasons(rows: Sequence[Receipt]) -> Spellings:
    return (*_totals(rows), *(row.reason for row in rows if row.reason))


def _offers(world: World, who: Principal, category: str = "") -> list[Offer]:
    """The offers this user can take, of a category or all."""
    return [world.offers[key] for key in sorted(truth(world, who, category or None).offer_ids)]


def _cheapest(world: World, _: Principal, category: str) -> Spellings:
    rows = [product for product in world.products.values() if product.category == category]
    least = min((product.price_cents for product in rows), default=0)
    return tuple(product.name for product in rows if product.price_cents == least)


def _best_game(world: World, _: Principal, __: str) -> Spellings:
    worth = {
        game.name: sum(goal.points for goal in game.goals)
        for game in world.games.values()
        if game.ends >= world.as_of
    }
    return tuple(name for name, points in worth.items() if points == max(worth.values()))


def _progress(world: World, who: Principal, name: str) -> Spellings:
    rows = world.progress.get((who.tenant_id, who.user_id), ())
    return tuple(
        f"{world.games[row.game_id].steps} {row.step}"
        for row in rows
        if world.games[row.game_id].name == name
    )


def _games(world: World, name: str) -> list[Game]:
    return [game for game in world.games.values() if game.name == name]


def _nearest_stores(world: World, who: Principal, kind: str) -> list[Store]:
    middle = world.meta.cities[world.users[who.tenant_id, who.user_id].city]
    of_kind = [
        store for store in world.stores.values() if world.retailers[store.retailer_id].kind == kind
    ]

    def away(store: Store) -> float:
        return round(hypot(store.x - middle.x, store.y - middle.y), 1)

    least = min(map(away, of_kind), default=0.0)
    return [store for store in of_kind if away(store) == least]


def _closes(world: World, who: Principal, kind: str) -> Spellings:
    hours = [store.closes for store in _nearest_stores(world, who, kind)]
    return tuple(
        spelling
        for hour in hours
        for spelling in (f"{hour}:00", f"{hour - 12} pm", f"{hour - 12}pm", f"{hour - 12} p.m")
    )


def _stores(world: World, _: Principal, name: str) -> Spellings:
    keys = {row.id for row in world.retailers.values() if row.name == name}
    count = sum(store.retailer_id in keys for store in world.stores.values())
    return (f"{count} store", f"{count} branch", f"{count} location") if count else ()


def _digital(world: World, _: Principal, name: str) -> Spellings:
    flags = [row.ereceipts for row in world.retailers.values() if row.name == name]
    return _DIGITAL[flags[0]] if flags else ()


def _unless_zero(count: int, unit: str = "") -> Spellings:
    return (f"{count}{unit}",) if count else ()


_DIGITAL: Mapping[bool, Spellings] = {
    True: (
        "takes eReceipts",
        "takes e-receipts",
        "sends digital",
        "sends e-receipts",
        "sends eReceipts",
    ),
    False: (
        "not take",
        "n't take",
        "not send",
        "n't send",
        "no digital",
        "no e-receipts",
        "no eReceipts",
    ),
}

FACTS: Mapping[str, Callable[[World, Principal, str], Spellings]] = {
    "balance": lambda world, who, _: (str(truth(world, who).points),),
    "pending": lambda world, who, _: _unless_zero(truth(world, who).pending_points),
    "earned": lambda world, who, method: _unless_zero(_points_earned(world, who, method)),
    "last_redemption": _last_redemption,
    "cost": lambda world, _, name: tuple(
        str(reward.points) for reward in world.rewards.values() if reward.name == name
    ),
    "latest_receipt": lambda world, who, _: _totals(_receipts(world, who)[:1]),
    "latest_store": lambda world, who, _: tuple(
        world.retailer_of(row).name for row in _receipts(world, who)[:1]
    ),
    "receipt_count": lambda world, who, _: _unless_zero(len(_receipts(world, who)), " receipt"),
    "pending_receipt": lambda world, who, _: _totals_and_reasons(_receipts(world, who, "pending")),
    "rejected_receipt": lambda world, who, _: _totals_and_reasons(
        _receipts(world, who, "rejected")
    ),
    "offer": lambda world, who, category: tuple(
        world.products[o.product_id].name for o in _offers(world, who, category)
    ),
    "cheapest": _cheapest,
    "expires": lambda world, who, category: tuple(
        day for o in _offers(world, who, category) for day in date_spellings(o.ends)
    ),
    "next_expiring": lambda world, who, _: date_spellings(
        min(offer.ends for offer in _offers(world, who))
    ),
    "minimum": lambda world, who, category: tuple(
        f"Buy {offer.minimum}" for offer in _offers(world, who, category)
    ),
    "limit": lambda world, who, category: tuple(
        f"limit {offer.limit}" for offer in _offers(world, who, category)
    ),
    "where": lambda world, who, category: (
        tuple(
            world.retailers[key].name
            for offer in _offers(world, who, category)
            for key in offer.retailer_ids
        )
        or ("any store",)
    ),
    "best_game": _best_game,
    "progress": _progress,
    "goal": lambda world, _, name: tuple(
        str(game.goals[-1].points) for game in _games(world, name)
    ),
    "ends": lambda world, _, name: tuple(
        day for game in _games(world, name) for day in date_spellings(game.ends)
    ),
    "eat": lambda world, _, cuisine: tuple(
        row.name for row in world.restaurants.values() if row.cuisine == cuisine
    ),
    "nearest": lambda world, who, kind: tuple(
        store.street for store in _nearest_stores(world, who, kind)
    ),
    "closes": _closes,
    "stores": _stores,
    "digital": _digital,
}
"""Key -> the spellings of what is true; any one of them will do."""
