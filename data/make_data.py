"""Writes data/world/*.jsonl from data/source/*.yaml: one simulated world, the same bytes on every run.

Run it as `python data/make_data.py`. Everything is drawn from one seed and dated relative to AS_OF; no clock is read.
Points have one source of truth, the ledger: a receipt, a reached goal or a redemption writes its entry there.
"""

import hashlib
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import yaml

SEED = 20261101
AS_OF = date(2026, 11, 1)
HERE = Path(__file__).parent
BASE_POINTS = 25
TENANTS = {"acme": 200, "globex": 100}
DEMO = ("acme", "u-001")
SECOND = ("acme", "u-002")
"""Whom the page offers next: with points of their own, so that a change of person can be seen."""
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
Row = dict[str, Any]


def source(name: str) -> Any:
    return yaml.safe_load((HERE / "source" / f"{name}.yaml").read_text(encoding="utf-8"))


def day(offset: int) -> str:
    """The date `offset` days from AS_OF, as ISO text; negative is past."""
    return (AS_OF + timedelta(days=offset)).isoformat()


def days(iso: str) -> int:
    return (date.fromisoformat(iso) - AS_OF).days


def spoken(iso: str) -> str:
    """14 Nov 2026."""
    when = date.fromisoformat(iso)
    return f"{when.day} {MONTHS[when.month - 1]} {when.year}"


def near(rng: random.Random, centre: Sequence[int], spread: float) -> dict[str, float]:
    return {
        axis: round(at + rng.uniform(-spread, spread), 1)
        for axis, at in zip("xy", centre, strict=True)
    }


def make_products(catalogue: Mapping[str, Row]) -> list[Row]:
    rng, rows = random.Random(f"{SEED} products"), list[Row]()
    for category, entry in catalogue.items():
        for brand in entry["brands"]:
            for variant in entry["variants"]:
                cents = rng.randint(*entry["price"]) // 10 * 10 + 9
                rows.append(
                    {
                        "id": f"pr-{len(rows) + 1:04}",
                        "name": f"{brand} {variant}",
                        "brand": brand,
                        "category": category,
                        "price_cents": cents,
                    }
                )
    return rows


def make_retailers(places: Row) -> tuple[list[Row], list[Row]]:
    rng, retailers, stores = random.Random(f"{SEED} retailers"), list[Row](), list[Row]()
    for entry in places["retailers"]:
        retailer = {
            "id": f"rt-{len(retailers) + 1:02}",
            **{key: entry[key] for key in ("name", "kind", "ereceipts")},
        }
        retailers.append(retailer)
        cities = list(places["cities"])
        chosen = ["Rivermont", *rng.sample(cities, len(cities)), *cities][: entry["stores"]]
        for city in chosen:
            opens, closes = rng.choice([(7, 22), (8, 21), (9, 20), (6, 23)])
            stores.append(
                {
                    "id": f"st-{len(stores) + 1:03}",
                    "retailer_id": retailer["id"],
                    "city": city,
                    "street": f"{rng.randint(1, 240)} {rng.choice(places['streets'])}",
                    **near(rng, places["cities"][city], 4),
                    "opens": opens,
                    "closes": closes,
                }
            )
    return retailers, stores


def offer_terms(offer: Row, shops: str) -> str:
    count = offer["minimum"]
    need = f"Buy {count} in one trip" if count > 1 else "Buy 1"
    return (
        f"{need} at {shops} between {spoken(offer['starts'])} and {spoken(offer['ends'])}. "
        f"Limit {offer['limit']} per account. Send the receipt within 14 days of purchase. "
        "Sizes and varieties not named here do not count."
    )


def make_offers(
    catalogue: Mapping[str, Row], products: list[Row], retailers: list[Row]
) -> list[Row]:
    rng, rows = random.Random(f"{SEED} offers"), list[Row]()
    for tenant in TENANTS:
        for category, entry in catalogue.items():
            of_category = [product for product in products if product["category"] == category]
            sellers = [retailer for retailer in retailers if retailer["kind"] in entry["kinds"]]
            live = min(len(of_category), rng.randint(3, 6))
            for number, product in enumerate(
                rng.sample(of_category, min(len(of_category), live + 6))
            ):
                starts = rng.randint(-40, -4) if number < live else rng.randint(-170, -70)
                ends = rng.randint(2, 60) if number < live else starts + rng.randint(20, 60)
                named = (
                    rng.sample(sellers, min(len(sellers), rng.choice([1, 1, 2, 3])))
                    if rng.random() < 0.7
                    else []
                )
                offer: Row = {
                    "id": f"of-{len(rows) + 1:04}",
                    "tenant_id": tenant,
                    "product_id": product["id"],
                    "brand": product["brand"],
                    "category": category,
                    "points": rng.choice([50, 75, 100, 150, 200, 250, 300, 400, 500, 750]),
                    "minimum": rng.choice([1, 1, 1, 1, 2, 3]),
                    "limit": rng.choice([1, 2, 3, 5]),
                    "retailer_ids": sorted(retailer["id"] for retailer in named),
                    "starts": day(starts),
                    "ends": day(ends),
                }
                shops = (
                    " or ".join(sorted(retailer["name"] for retailer in named))
                    or "any store that sells it"
                )
                rows.append({**offer, "terms": offer_terms(offer, shops)})
    return rows


def make_users(places: Row) -> list[Row]:
    rng = random.Random(f"{SEED} users")
    rows = [
        {
            "tenant_id": tenant,
            "id": f"u-{number:03}",
            "city": rng.choice(list(places["cities"])),
            "joined": day(-rng.randint(40, 330)),
        }
        for tenant, count in TENANTS.items()
        for number in range(1, count + 1)
    ]
    rows[0].update(city="Rivermont", joined=day(-320))
    return rows


def fill_basket(
    rng: random.Random, sold: list[Row], liked: list[Row], promoted: list[Row]
) -> list[Row]:
    """Lines of one receipt: a few products, some of them on offer, sometimes a line the scanner could not name."""
    chosen = {
        product["id"]: product for product in rng.sample(sold, min(len(sold), rng.randint(1, 4)))
    }
    for pool, most in ((liked, 1), (promoted, 3)):
        for product in rng.sample(pool, min(len(pool), rng.randint(0, most))):
            chosen[product["id"]] = product
    lines: list[Row] = [
        {
            "product_id": product["id"],
            "text": "",
            "quantity": rng.choice([1, 1, 1, 2, 2, 3]),
            "price_cents": product["price_cents"],
        }
        for product in chosen.values()
    ]
    if rng.random() < 0.25:
        unnamed = rng.choice(["DELI COUNTER", "PRODUCE", "BAKERY ITEM", "BAG FEE"])
        lines.append(
            {
                "product_id": None,
                "text": unnamed,
                "quantity": 1,
                "price_cents": rng.randint(10, 900),
            }
        )
    return lines


def live(offer: Row, when: str, retailer_id: str) -> bool:
    at_store = not offer["retailer_ids"] or retailer_id in offer["retailer_ids"]
    return at_store and offer["starts"] <= when <= offer["ends"]


def matches(receipt: Row, retailer_id: str, offers: Iterable[Row], used: Counter[str]) -> list[Row]:
    """Which offers a receipt meets: live that day, at that retailer, enough of the product, limit not used up."""
    bought: Counter[str] = Counter()
    for line in receipt["lines"]:
        bought[line["product_id"]] += line["quantity"]
    return [
        {"offer_id": offer["id"], "points": offer["points"]}
        for offer in offers
        if bought[offer["product_id"]] >= offer["minimum"]
        and live(offer, receipt["date"], retailer_id)
        and used[offer["id"]] < offer["limit"]
    ]


REASONS = (
    "The photo was too blurry to read.",
    "The receipt was older than 14 days.",
    "The same receipt was sent before.",
    "The total was cut off.",
    "The store name was not visible.",
)


def receipt_status(
    rng: random.Random, user: Row, position: int, age: int
) -> tuple[str, str | None]:
    """Status and reason. The demo user has one pending receipt, the newest, and two rejected ones."""
    if (user["tenant_id"], user["id"]) == DEMO:
        fixed = {0: ("pending", None), 1: ("rejected", REASONS[0]), 12: ("rejected", REASONS[2])}
        return fixed.get(position, ("accepted", None))
    if age <= 3 and rng.random() < 0.6:
        return "pending", None
    return ("rejected", rng.choice(REASONS)) if rng.random() < 0.08 else ("accepted", None)


def make_receipt(
    rng: random.Random,
    user: Row,
    when: str,
    store: Row,
    lines: list[Row],
    verdict: tuple[str, str | None],
) -> Row:
    status, reason = verdict
    return {
        "tenant_id": user["tenant_id"],
        "user_id": user["id"],
        "store_id": store["id"],
        "date": when,
        "channel": rng.choice(["photo", "photo", "ereceipt"]),
        "status": status,
        "reason": reason,
        "lines": lines,
        "total_cents": sum(line["quantity"] * line["price_cents"] for line in lines),
    }


def shop(
    rng: random.Random, user: Row, world: Mapping[str, list[Row]], kinds: Mapping[str, list[str]]
) -> list[Row]:
    """All receipts of one user, oldest first, without ids."""
    demo = (user["tenant_id"], user["id"]) == DEMO
    kind_of = {retailer["id"]: retailer["kind"] for retailer in world["retailers"]}
    products = {product["id"]: product for product in world["products"]}
    offers = [offer for offer in world["offers"] if offer["tenant_id"] == user["tenant_id"]]
    stores = [store for store in world["stores"] if store["city"] == user["city"]]
    groceries = [store for store in stores if kind_of[store["retailer_id"]] == "grocery"]
    ages = sorted(
        rng.sample(range(1, min(-days(user["joined"]), 180)), 36 if demo else rng.randint(3, 13))
    )
    if demo:
        ages[:2] = [1, 4]
    liked = world["products"][:6] if demo else rng.sample(world["products"], 4)
    used: Counter[str] = Counter()
    rows: list[Row] = []
    for position, age in reversed(list(enumerate(ages))):
        store = rng.choice(groceries if demo and age < 5 else stores)
        retailer = store["retailer_id"]
        sold = [
            product
            for product in world["products"]
            if kind_of[retailer] in kinds[product["category"]]
        ]
        promoted = [
            products[offer["product_id"]] for offer in offers if live(offer, day(-age), retailer)
        ]
        lines = fill_basket(
            rng,
            sold,
            [product for product in liked if product in sold],
            [product for product in promoted if product in sold],
        )
        if demo and age < 5:
            coffee = next(product for product in promoted if product["category"] == "coffee")
            lines = [
                {
                    "product_id": coffee["id"],
                    "text": "",
                    "quantity": 2,
                    "price_cents": coffee["price_cents"],
                }
            ] + [line for line in lines if line["product_id"] != coffee["id"]]
        receipt = make_receipt(
            rng, user, day(-age), store, lines, receipt_status(rng, user, position, age)
        )
        rejected = receipt["status"] == "rejected"
        met = [] if rejected else matches(receipt, retailer, offers, used)
        used.update(match["offer_id"] for match in met)
        points = 0 if rejected else BASE_POINTS + sum(match["points"] for match in met)
        rows.append({**receipt, "matches": met, "points": points})
    return rows


def make_receipts(
    users: list[Row], world: Mapping[str, list[Row]], catalogue: Mapping[str, Row]
) -> list[Row]:
    rng = random.Random(f"{SEED} receipts")
    kinds = {category: entry["kinds"] for category, entry in catalogue.items()}
    written = [receipt for user in users for receipt in shop(rng, user, world, kinds)]
    return [{"id": f"rc-{number:05}", **receipt} for number, receipt in enumerate(written, start=1)]


def make_games(play: Row) -> list[Row]:
    rng = random.Random(f"{SEED} games")
    return [
        {
            "id": f"gm-{number:02}",
            **{key: entry[key] for key in ("name", "genre", "steps")},
            "goals": [{"step": step, "points": points} for step, points in entry["goals"]],
            "ends": day(rng.randint(12, 90)),
        }
        for number, entry in enumerate(play["games"], start=1)
    ]


def make_progress(users: list[Row], games: list[Row]) -> list[Row]:
    rng, rows = random.Random(f"{SEED} progress"), list[Row]()
    for user in users:
        demo = (user["tenant_id"], user["id"]) == DEMO
        for game in rng.sample(games, 4 if demo else rng.choice([0, 0, 1, 1, 2, 3])):
            began = rng.randint(max(days(user["joined"]), -90), -3)
            reached = rng.randint(2 if demo else 0, len(game["goals"]) - 1)
            dates = sorted(rng.randint(began, -1) for _ in range(reached))
            floor = game["goals"][reached - 1]["step"] if reached else 0
            rows.append(
                {
                    "tenant_id": user["tenant_id"],
                    "user_id": user["id"],
                    "game_id": game["id"],
                    "began": day(began),
                    "step": rng.randint(floor, game["goals"][reached]["step"] - 1),
                    "reached": [day(when) for when in dates],
                }
            )
    return rows


def earnings(
    user: Row,
    receipts: list[Row],
    progress: list[Row],
    games: Mapping[str, Row],
    rng: random.Random,
) -> list[Row]:
    """Everything a user earned, oldest first, without ids."""
    rows: list[Row] = [
        {
            "date": user["joined"],
            "method": "bonus",
            "points": 500,
            "ref": None,
            "note": "Welcome bonus",
        }
    ]
    for receipt in receipts:
        if receipt["status"] == "accepted":
            rows.append(
                {
                    "date": receipt["date"],
                    "method": "receipt",
                    "points": receipt["points"],
                    "ref": receipt["id"],
                    "note": "Receipt accepted",
                }
            )
    for entry in progress:
        game = games[entry["game_id"]]
        for goal, when in zip(game["goals"], entry["reached"], strict=False):
            note = f"{game['name']}: {game['steps']} {goal['step']}"
            rows.append(
                {
                    "date": when,
                    "method": "game",
                    "points": goal["points"],
                    "ref": game["id"],
                    "note": note,
                }
            )
    demo = (user["tenant_id"], user["id"]) == DEMO
    second = (user["tenant_id"], user["id"]) == SECOND
    for _ in range(3 if demo else rng.choice([0, 0, 0, 1, 2])):
        when = day(rng.randint(days(user["joined"]), -1))
        rows.append(
            {
                "date": when,
                "method": "referral",
                "points": 3000 if second else 2000,
                "ref": None,
                "note": "A friend joined, summer campaign" if second else "A friend joined",
            }
        )
    return sorted(rows, key=lambda row: (row["date"], row["method"], row["note"], row["ref"] or ""))


def make_ledger(users: list[Row], world: Mapping[str, list[Row]]) -> tuple[list[Row], list[Row]]:
    """The points ledger and the redemptions drawn from it; no balance is ever below zero."""
    rng, ledger, redemptions = random.Random(f"{SEED} ledger"), list[Row](), list[Row]()
    games = {game["id"]: game for game in world["games"]}
    own: dict[str, dict[tuple[str, str], list[Row]]] = {
        "receipts": defaultdict(list),
        "progress": defaultdict(list),
    }
    for name, rows in own.items():
        for row in world[name]:
            rows[row["tenant_id"], row["user_id"]].append(row)
    for user in users:
        who = (user["tenant_id"], user["id"])
        key = {"tenant_id": who[0], "user_id": who[1]}
        balance = 0
        for row in earnings(user, own["receipts"][who], own["progress"][who], games, rng):
            balance += row["points"]
            ledger.append({"id": f"le-{len(ledger) + 1:05}", **key, **row})
            affordable = [reward for reward in world["rewards"] if reward["points"] <= balance]
            if who == DEMO:
                affordable = [reward for reward in affordable if reward["points"] <= balance - 4000]
            if not affordable or rng.random() > 0.12:
                continue
            reward = rng.choice(affordable)
            balance -= reward["points"]
            fresh = days(row["date"]) >= -3
            redemption = {
                "id": f"rd-{len(redemptions) + 1:04}",
                **key,
                "reward_id": reward["id"],
                "date": row["date"],
                "points": reward["points"],
                "status": "processing" if fresh else "delivered",
            }
            redemptions.append(redemption)
            spent = {
                "date": row["date"],
                "method": "redemption",
                "points": -reward["points"],
                "ref": redemption["id"],
                "note": reward["name"],
            }
            ledger.append({"id": f"le-{len(ledger) + 1:05}", **key, **spent})
    return ledger, redemptions


def make_restaurants(places: Row) -> tuple[list[Row], list[Row]]:
    rng, restaurants, offers = random.Random(f"{SEED} restaurants"), list[Row](), list[Row]()
    for cuisine, names in places["cuisines"].items():
        for name in names:
            for city in [
                "Rivermont",
                *rng.sample([c for c in places["cities"] if c != "Rivermont"], rng.randint(1, 3)),
            ]:
                restaurants.append(
                    {
                        "id": f"rs-{len(restaurants) + 1:03}",
                        "name": name,
                        "cuisine": cuisine,
                        "city": city,
                        "street": f"{rng.randint(1, 240)} {rng.choice(places['streets'])}",
                        **near(rng, places["cities"][city], 5),
                        "price": rng.choice([1, 1, 2, 2, 3]),
                        "rating": rng.randint(34, 49) / 10,
                    }
                )
    names = {restaurant["name"]: restaurant["cuisine"] for restaurant in restaurants}
    for tenant in TENANTS:
        for name, cuisine in names.items():
            if rng.random() < 0.7:
                spend = rng.choice([1000, 1500, 2000, 3000])
                offers.append(
                    {
                        "id": f"ro-{len(offers) + 1:03}",
                        "tenant_id": tenant,
                        "restaurant": name,
                        "cuisine": cuisine,
                        "points": rng.choice([200, 300, 400, 500, 800]),
                        "minimum_cents": spend,
                        "starts": day(rng.randint(-30, -2)),
                        "ends": day(rng.randint(3, 45)) if rng.random() < 0.85 else day(-1),
                    }
                )
    return restaurants, offers


def make_world() -> dict[str, list[Row]]:
    """Every table of the world, in the order they are written."""
    catalogue, places, play, articles = (
        source(name) for name in ("catalogue", "places", "play", "articles")
    )
    world: dict[str, list[Row]] = {}
    world["categories"] = [
        {"id": key, "name": entry["name"], "words": entry["words"]}
        for key, entry in catalogue.items()
    ]
    world["products"] = make_products(catalogue)
    world["retailers"], world["stores"] = make_retailers(places)
    world["offers"] = make_offers(catalogue, world["products"], world["retailers"])
    world["users"] = make_users(places)
    world["receipts"] = make_receipts(world["users"], world, catalogue)
    world["games"] = make_games(play)
    world["progress"] = make_progress(world["users"], world["games"])
    world["rewards"] = [
        {"id": f"rw-{number:02}", **entry} for number, entry in enumerate(play["rewards"], start=1)
    ]
    world["ledger"], world["redemptions"] = make_ledger(world["users"], world)
    world["restaurants"], world["restaurant_offers"] = make_restaurants(places)
    world["articles"] = [
        {"id": f"ha-{topic}-{number}", "topic": topic, **entry}
        for topic, entries in articles.items()
        for number, entry in enumerate(entries, start=1)
    ]
    return world


def write(folder: Path) -> dict[str, int]:
    """Writes the world into `folder`; returns table -> rows."""
    world = make_world()
    places = source("places")
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    for name, rows in world.items():
        text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
        digest.update(text.encode())
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8", newline="\n")
    counts = {name: len(rows) for name, rows in world.items()}
    meta = {
        "as_of": AS_OF.isoformat(),
        "seed": SEED,
        "simulated": True,
        "base_points": BASE_POINTS,
        "cities": {name: {"x": at[0], "y": at[1]} for name, at in places["cities"].items()},
        "rows": counts,
        "sha256": digest.hexdigest(),
    }
    (folder / "meta.json").write_text(
        json.dumps(meta, indent=2) + "\n", encoding="utf-8", newline="\n"
    )
    return counts


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "world"
    for table, count in write(target).items():
        print(f"{count:6}  {table}")
