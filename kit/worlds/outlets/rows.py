"""The outlets of two invented tenants, their menus and their weeks: drawn from one seed, the same on every machine."""

from collections.abc import Mapping
from functools import cache
from random import Random

from kit.core.value import Value

SEED = 20261101
TENANTS = {"acme": 3_000, "globex": 1_200}
"""How many outlets a tenant has. Their ids run through all tenants, so that an id says nothing about whose it is."""
LARGE_MENU = 7_000
"""Items of the first outlet of each tenant: about 1 MB as JSON."""
WEEKS = 52
CITIES = ("Rivermont", "Oakfield", "Lakemoor", "Brightwater", "Stonebridge", "Maple Hill")
CUISINES = ("pizza", "coffee", "noodles", "burgers", "salads", "bakery")
STATUSES = ("active", "active", "active", "active", "paused", "closed")
_STREETS = (
    "Mill Road",
    "Harbor Way",
    "Elm Street",
    "Station Avenue",
    "Orchard Lane",
    "Bridge Street",
)
_FIRST = (
    "Copper",
    "Willow",
    "North",
    "Lantern",
    "Juniper",
    "Granite",
    "Meadow",
    "Amber",
    "Harbor",
    "Clover",
)
_SECOND = ("Kettle", "Table", "Corner", "Oven", "Spoon", "Garden", "Counter", "Pantry")
_WAYS = (
    "smoked",
    "grilled",
    "baked",
    "spiced",
    "fresh",
    "roasted",
    "pickled",
    "toasted",
    "chilled",
    "braised",
)
_OF = (
    "tomato",
    "mushroom",
    "chicken",
    "pumpkin",
    "salmon",
    "lentil",
    "cheddar",
    "apple",
    "hazelnut",
    "spinach",
)
SWEET = ("desserts", "drinks")
"""Categories with words of their own: nobody drinks a braised salmon latte. Each word has the length of the one in its
place, so that a menu has the same size."""
_SWEET_WAYS = (
    "glazed",
    "candied",
    "baked",
    "spiced",
    "fresh",
    "roasted",
    "frosted",
    "toasted",
    "chilled",
    "whipped",
)
_SWEET_OF = (
    "cherry",
    "cinnamon",
    "parfait",
    "pumpkin",
    "mousse",
    "almond",
    "vanilla",
    "apple",
    "hazelnut",
    "apricot",
)
_WITH_MEAT = (_OF.index("chicken"), _OF.index("salmon"))
"""Places in both lists of what is not vegetarian; of the sweet things these are set with gelatine."""
_DISH = {
    "starters": ("soup", "toast", "dip", "skewer"),
    "mains": ("bowl", "pie", "plate", "noodles"),
    "sides": ("fries", "slaw", "rice", "beans"),
    "desserts": ("tart", "cake", "sorbet", "crumble"),
    "drinks": ("latte", "tea", "lemonade", "shake"),
}
CATEGORIES = tuple(_DISH)


class Outlet(Value):
    """One place that sells food."""

    id: str
    name: str
    city: str
    street: str
    cuisine: str
    status: str
    opened: int
    """Year."""
    seats: int


class Item(Value):
    """One line of a menu."""

    id: str
    name: str
    category: str
    price_cents: int
    vegetarian: bool
    description: str


class Sales(Value):
    """What an outlet sold in its last weeks."""

    orders: int
    revenue_cents: int
    rating: float
    """Of 5."""


@cache
def outlets_of(tenant: str) -> Mapping[str, Outlet]:
    """A tenant's outlets by id; a tenant that nobody knows has none."""
    rng = Random(f"{SEED} outlets {tenant}")
    first = 1 + sum(count for name, count in TENANTS.items() if name < tenant)
    ids = [f"ou-{first + place:04}" for place in range(TENANTS.get(tenant, 0))]
    return {outlet_id: _outlet(outlet_id, rng) for outlet_id in ids}


def _outlet(outlet_id: str, rng: Random) -> Outlet:
    return Outlet(
        id=outlet_id,
        name=f"{rng.choice(_FIRST)} {rng.choice(_SECOND)}",
        city=rng.choice(CITIES),
        street=f"{rng.randint(1, 180)} {rng.choice(_STREETS)}",
        cuisine=rng.choice(CUISINES),
        status=rng.choice(STATUSES),
        opened=rng.randint(1996, 2026),
        seats=rng.randint(8, 140),
    )


def has_large_menu(outlet_id: str) -> bool:
    """Whether an outlet is the first of its tenant."""
    return any(next(iter(outlets_of(tenant))) == outlet_id for tenant in TENANTS)


@cache
def menu_of(outlet_id: str) -> tuple[Item, ...]:
    """The menu of an outlet."""
    rng = Random(f"{SEED} menu {outlet_id}")
    return tuple(
        _item(place, rng)
        for place in range(LARGE_MENU if has_large_menu(outlet_id) else rng.randint(18, 48))
    )


def _item(place: int, rng: Random) -> Item:
    category = rng.choice(CATEGORIES)
    ways = _SWEET_WAYS if category in SWEET else _WAYS
    things = _SWEET_OF if category in SWEET else _OF
    way = rng.choice(ways)
    thing = rng.choice(things)
    other = rng.choice(things)
    meat = {things[position] for position in _WITH_MEAT}
    return Item(
        id=f"it-{place + 1:04}",
        name=f"{way} {thing} {rng.choice(_DISH[category])}".capitalize(),
        category=category,
        price_cents=rng.randrange(250, 2_900, 5),
        vegetarian=not {thing, other} & meat,
        description=f"With {other}, made to order.",
    )


def sales_of(outlet: Outlet, weeks: int) -> Sales:
    """What an outlet sold in its last weeks; a closed one sold nothing."""
    rng = Random(f"{SEED} sales {outlet.id}")
    base = outlet.seats * rng.uniform(3, 12)
    trend = rng.uniform(-0.4, 0.4)
    ticket = rng.randint(700, 2_600)
    rating = round(rng.uniform(2.6, 4.9), 1)
    if outlet.status == "closed":
        orders = 0
    else:
        orders = sum(int(base * (1 - trend * week / WEEKS)) for week in range(weeks))
    return Sales(orders=orders, revenue_cents=orders * ticket, rating=rating)
