"""The rows of the simulated world, one frozen value per table of data/world."""

from typing import Literal

from kit.core.value import Value

Day = str
"""A date as ISO text, so that rows compare as they are."""


class Category(Value):
    """A kind of goods."""

    id: str
    name: str
    words: tuple[str, ...]
    """Other words people use for it."""


class Product(Value):
    """One thing that can be bought."""

    id: str
    name: str
    brand: str
    category: str
    price_cents: int


class Retailer(Value):
    """A chain of stores."""

    id: str
    name: str
    kind: str
    ereceipts: bool


class Store(Value):
    """One shop of a retailer; x and y are miles on the map of its city."""

    id: str
    retailer_id: str
    city: str
    street: str
    x: float
    y: float
    opens: int
    closes: int


class Offer(Value):
    """Points that a tenant pays for buying a product, in some stores and for a time."""

    id: str
    tenant_id: str
    product_id: str
    brand: str
    category: str
    points: int
    minimum: int
    limit: int
    retailer_ids: tuple[str, ...]
    """Empty means every store that sells the product."""
    starts: Day
    ends: Day
    terms: str


class User(Value):
    """Somebody with an account."""

    tenant_id: str
    id: str
    city: str
    joined: Day


class Line(Value):
    """One line of a receipt."""

    product_id: str | None
    """None where the scanner could not name the line; `text` then holds what it read."""
    text: str
    quantity: int
    price_cents: int


class OfferMatch(Value):
    """An offer that a receipt met, and the points it paid."""

    offer_id: str
    points: int


class Receipt(Value):
    """One purchase, as it was scanned."""

    id: str
    tenant_id: str
    user_id: str
    store_id: str
    date: Day
    channel: Literal["photo", "ereceipt"]
    status: Literal["accepted", "pending", "rejected"]
    reason: str | None
    lines: tuple[Line, ...]
    total_cents: int
    matches: tuple[OfferMatch, ...]
    points: int
    """Awarded when accepted, expected when pending, 0 when rejected."""


class Goal(Value):
    """A step of a game, and the points it pays."""

    step: int
    points: int


class Game(Value):
    """A game that pays points for reaching its goals."""

    id: str
    name: str
    genre: str
    steps: str
    """What is counted: level, win, puzzle."""
    goals: tuple[Goal, ...]
    ends: Day


class Progress(Value):
    """How far a user got in a game."""

    tenant_id: str
    user_id: str
    game_id: str
    began: Day
    step: int
    reached: tuple[Day, ...]
    """When each goal was reached, in the order of the game's goals."""


class Reward(Value):
    """What points can buy."""

    id: str
    name: str
    kind: str
    points: int


class Entry(Value):
    """One line of the points ledger; the balance is the sum of a user's entries."""

    id: str
    tenant_id: str
    user_id: str
    date: Day
    method: Literal["receipt", "game", "referral", "bonus", "redemption"]
    points: int
    ref: str | None
    """The receipt, game or redemption behind it."""
    note: str


class Redemption(Value):
    """A reward that a user bought with points."""

    id: str
    tenant_id: str
    user_id: str
    reward_id: str
    date: Day
    points: int
    status: Literal["processing", "delivered"]


class Restaurant(Value):
    """A place to eat."""

    id: str
    name: str
    cuisine: str
    city: str
    street: str
    x: float
    y: float
    price: int
    rating: float


class RestaurantOffer(Value):
    """Points that a tenant pays for spending money in a restaurant."""

    id: str
    tenant_id: str
    restaurant: str
    cuisine: str
    points: int
    minimum_cents: int
    starts: Day
    ends: Day


class Article(Value):
    """A help article."""

    id: str
    topic: str
    title: str
    words: tuple[str, ...]
    text: str


class Place(Value):
    """A point on the map, in miles."""

    x: float
    y: float


class Meta(Value):
    """What the world says about itself."""

    as_of: Day
    """Today, inside the world."""
    seed: int
    simulated: bool
    base_points: int
    cities: dict[str, Place]
    rows: dict[str, int]
    sha256: str
