"""The simulated world in memory: frozen rows, indexes over them, and what is true for a user."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from kit.core.context import Principal
from kit.core.errors import DataError
from kit.core.value import Value
from kit.worlds.consumer import rows, talk
from kit.worlds.service.search import GRAMMAR, Index

V = TypeVar("V", bound=Value)
Who = tuple[str, str]
"""Tenant id and user id: a user id alone names nobody."""
_FIX = "write the data anew with `python data/make_data.py`"


def who(principal: Principal) -> Who:
    """The key under which a principal stands in the tables."""
    return principal.tenant_id, principal.user_id


@dataclass(frozen=True)
class World:
    """Every table of data/world, keyed as it is asked for. Rows of a user are keyed by tenant and user."""

    meta: rows.Meta
    categories: Mapping[str, rows.Category]
    products: Mapping[str, rows.Product]
    retailers: Mapping[str, rows.Retailer]
    stores: Mapping[str, rows.Store]
    offers: Mapping[str, rows.Offer]
    users: Mapping[Who, rows.User]
    receipts: Mapping[Who, Sequence[rows.Receipt]]
    games: Mapping[str, rows.Game]
    progress: Mapping[Who, Sequence[rows.Progress]]
    rewards: Mapping[str, rows.Reward]
    ledger: Mapping[Who, Sequence[rows.Entry]]
    redemptions: Mapping[Who, Sequence[rows.Redemption]]
    restaurants: Mapping[str, rows.Restaurant]
    restaurant_offers: Mapping[str, rows.RestaurantOffer]
    articles: Sequence[rows.Article]

    @property
    def as_of(self) -> rows.Day:
        """Today, inside the world."""
        return self.meta.as_of

    def retailer_of(self, receipt: rows.Receipt) -> rows.Retailer:
        return self.retailers[self.stores[receipt.store_id].retailer_id]

    def live_offers(self, tenant_id: str) -> list[rows.Offer]:
        """A tenant's offers that hold today, most points first."""
        live = [
            o
            for o in self.offers.values()
            if o.tenant_id == tenant_id and o.starts <= self.as_of <= o.ends
        ]
        return sorted(live, key=lambda offer: (-offer.points, offer.ends, offer.id))

    @cached_property
    def offer_index(self) -> Mapping[str, Index[rows.Offer]]:
        """Tenant -> its live offers by their words."""
        tenants = sorted({offer.tenant_id for offer in self.offers.values()})
        return {
            tenant: Index(self.live_offers(tenant), self._offer_words, talk=talk.OFFERS)
            for tenant in tenants
        }

    @cached_property
    def product_index(self) -> Index[rows.Product]:
        by_price = sorted(
            self.products.values(), key=lambda product: (product.price_cents, product.id)
        )
        return Index(by_price, self.product_words, talk=talk.PURCHASES)

    @cached_property
    def article_index(self) -> Index[rows.Article]:
        def describe(article: rows.Article) -> list[tuple[float, str]]:
            words = " ".join([*article.words, *article.topic.split("_")])
            return [(2.0, words), (1.5, article.title)]

        return Index(self.articles, describe, noise=GRAMMAR)

    def product_words(self, product: rows.Product) -> list[tuple[float, str]]:
        category = self.categories[product.category]
        return [
            (3.0, product.brand),
            (3.0, category.name),
            (1.5, " ".join(category.words)),
            (1.0, product.name),
            (4.0, product.id),
        ]

    def _offer_words(self, offer: rows.Offer) -> list[tuple[float, str]]:
        shops = " ".join(self.retailers[key].name for key in offer.retailer_ids)
        return [*self.product_words(self.products[offer.product_id]), (0.8, shops), (4.0, offer.id)]


def load_world(folder: Path) -> World:
    """Reads data/world.

    Raises DataError naming the file, the line and the way to write it anew when a file is missing, broken or cut short.
    """
    meta = load_meta(folder / "meta.json")
    read = _Reader(folder, meta)
    return World(
        meta=meta,
        categories=_by_id(read("categories", rows.Category)),
        products=_by_id(read("products", rows.Product)),
        retailers=_by_id(read("retailers", rows.Retailer)),
        stores=_by_id(read("stores", rows.Store)),
        offers=_by_id(read("offers", rows.Offer)),
        users=load_users(folder),
        receipts=_by_user(read("receipts", rows.Receipt)),
        games=_by_id(read("games", rows.Game)),
        progress=_by_user(read("progress", rows.Progress)),
        rewards=_by_id(read("rewards", rows.Reward)),
        ledger=_by_user(read("ledger", rows.Entry)),
        redemptions=_by_user(read("redemptions", rows.Redemption)),
        restaurants=_by_id(read("restaurants", rows.Restaurant)),
        restaurant_offers=_by_id(read("restaurant_offers", rows.RestaurantOffer)),
        articles=read("articles", rows.Article),
    )


def load_users(folder: Path) -> Mapping[Who, rows.User]:
    """The people of data/world alone. Raises DataError as `load_world` does."""
    users = _Reader(folder, load_meta(folder / "meta.json"))("users", rows.User)
    return {(user.tenant_id, user.id): user for user in users}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path} ({type(error).__name__}): {_FIX}") from error


def load_meta(path: Path) -> rows.Meta:
    """What holds for a whole world: its day, its cities, how many rows each table has. Raises DataError."""
    try:
        return rows.Meta.model_validate_json(_text(path))
    except ValidationError as error:
        raise DataError(f"{path} cannot be used ({error.errors()[0]['msg']}): {_FIX}") from error


@dataclass(frozen=True)
class _Reader:
    folder: Path
    meta: rows.Meta

    def __call__(self, table: str, row: type[V]) -> list[V]:
        path = self.folder / f"{table}.jsonl"
        values: list[V] = []
        for number, line in enumerate(_text(path).splitlines(), start=1):
            try:
                values.append(row.model_validate_json(line))
            except ValidationError as error:
                fault = error.errors()[0]
                field = ".".join(map(str, fault["loc"]))
                raise DataError(
                    f"{path}, line {number}: {f'{field}: ' if field else ''}{fault['msg']}; {_FIX}"
                ) from error
        if len(values) != self.meta.rows.get(table):
            raise DataError(
                f"{path} holds {len(values)} rows where meta.json says {self.meta.rows.get(table)}: {_FIX}"
            )
        return values


def _by_id(records: Iterable[V]) -> dict[str, V]:
    return {row.id: row for row in records}  # type: ignore[attr-defined]


def _by_user(records: Iterable[V]) -> dict[Who, list[V]]:
    grouped: dict[Who, list[V]] = defaultdict(list)
    for row in records:
        grouped[row.tenant_id, row.user_id].append(row)  # type: ignore[attr-defined]
    return dict(grouped)


class Truth(Value):
    """What holds for one user today, found by plain scans that share no code with the enrichers."""

    points: int
    pending_points: int
    receipt_ids: dict[str, tuple[str, ...]]
    """Status -> ids, newest first."""
    offer_ids: frozenset[str]
    """Live offers of the user's tenant in the category asked for; all of them when none is."""


def truth(world: World, principal: Principal, category: str | None = None) -> Truth:
    """The one true answer to a mixed question about points, receipts and offers."""
    points = 0
    for entries in world.ledger.values():
        points += sum(
            e.points
            for e in entries
            if e.tenant_id == principal.tenant_id and e.user_id == principal.user_id
        )
    receipts = [
        receipt
        for owner_receipts in world.receipts.values()
        for receipt in owner_receipts
        if receipt.tenant_id == principal.tenant_id and receipt.user_id == principal.user_id
    ]
    receipts.sort(key=lambda receipt: receipt.date, reverse=True)
    return Truth(
        points=points,
        pending_points=sum(receipt.points for receipt in receipts if receipt.status == "pending"),
        receipt_ids={
            status: tuple(receipt.id for receipt in receipts if receipt.status == status)
            for status in ("accepted", "pending", "rejected")
        },
        offer_ids=frozenset(
            offer.id
            for offer in world.offers.values()
            if offer.tenant_id == principal.tenant_id
            and offer.starts <= world.meta.as_of <= offer.ends
            and category in (None, offer.category)
        ),
    )
