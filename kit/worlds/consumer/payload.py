"""What the tools understand of the context service's payloads: typed by (domain type, enricher id),
blind to the rest."""

from collections.abc import Mapping
from typing import Literal

from kit.core.envelope import Inbound
from kit.worlds.service.wording import Searched


class Offer(Inbound):
    id: str
    title: str
    product: str
    brand: str
    category: str
    points: int
    minimum: int
    limit: int
    retailers: tuple[str, ...]
    starts: str
    ends: str
    terms: str


class Offers(Searched):
    offers: tuple[Offer, ...]


class Expiring(Offers):
    within_days: int
    ending: int


class Product(Inbound):
    id: str
    name: str
    brand: str
    category: str
    price_cents: int
    points: int = 0
    """What the best live offer on it pays."""


class Products(Searched):
    products: tuple[Product, ...]


class Purchase(Inbound):
    id: str
    name: str
    brand: str
    category: str
    price_cents: int
    quantity: int
    date: str
    retailer: str
    receipt_id: str


class Purchases(Searched):
    purchases: tuple[Purchase, ...]
    total_cents: int
    quantity: int


class Article(Inbound):
    id: str
    topic: str
    title: str
    text: str


class Articles(Searched):
    articles: tuple[Article, ...]


class Balance(Inbound):
    balance: int
    pending: int
    pending_receipts: int
    earned_30_days: int
    spent_30_days: int
    as_of: str


class Redemption(Inbound):
    id: str
    name: str
    points: int
    date: str
    status: str


class Redemptions(Searched):
    redemptions: tuple[Redemption, ...]
    total_points: int


class Reward(Inbound):
    id: str
    name: str
    points: int
    affordable: bool
    missing: int


class Quote(Searched):
    rewards: tuple[Reward, ...]
    balance: int
    affordable: int


class Method(Inbound):
    method: str
    points: int
    count: int


class Methods(Inbound):
    methods: tuple[Method, ...]
    balance: int


class Receipt(Inbound):
    id: str
    retailer: str
    date: str
    status: Literal["accepted", "pending", "rejected"]
    reason: str | None
    total_cents: int
    points: int
    items: int


class Receipts(Searched):
    receipts: tuple[Receipt, ...]
    counts: Mapping[str, int]


class Line(Inbound):
    name: str
    quantity: int
    price_cents: int


class FullReceipt(Receipt):
    lines: tuple[Line, ...]


class OneReceipt(Searched):
    receipt: FullReceipt | None


class Missed(Inbound):
    offer: Offer
    why: str


class MatchedReceipt(OneReceipt):
    offers: tuple[Offer, ...]
    missed: tuple[Missed, ...]


class Game(Inbound):
    id: str
    name: str
    genre: str
    steps: str
    points: int
    first_goal: int
    first_points: int
    begun: bool
    ends: str


class Games(Searched):
    games: tuple[Game, ...]


class Progress(Inbound):
    id: str
    name: str
    genre: str
    steps: str
    step: int
    earned: int
    next_goal: int
    next_points: int
    ends: str


class GameProgress(Searched):
    games: tuple[Progress, ...]


class Restaurant(Inbound):
    id: str
    name: str
    cuisine: str
    address: str
    miles: float
    price: str
    rating: float
    points: int


class Restaurants(Searched):
    restaurants: tuple[Restaurant, ...]
    city: str


class RestaurantOffer(Inbound):
    id: str
    title: str
    restaurant: str
    cuisine: str
    points: int
    minimum_cents: int
    starts: str
    ends: str


class RestaurantOffers(Searched):
    offers: tuple[RestaurantOffer, ...]


class Store(Inbound):
    id: str
    name: str
    kind: str
    address: str
    miles: float
    opens: int
    closes: int


class Stores(Searched):
    stores: tuple[Store, ...]
    city: str


class Retailer(Inbound):
    id: str
    name: str
    kind: str
    ereceipts: bool
    stores: int
    offers: int
    nearest: Store


class Retailers(Searched):
    retailers: tuple[Retailer, ...]
