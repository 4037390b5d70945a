"""Words a payload for a model or a person: short plain sentences, and the rows beside them as components."""

from collections.abc import Mapping, Sequence
from datetime import date

from kit.tools.enricher import Rendering, Wording
from kit.worlds.consumer import payload as p
from kit.worlds.service.wording import Searched, components, join_words


def money(cents: int) -> str:
    """Cents in dollars: $1,234.50."""
    return f"${cents / 100:,.2f}"


def day(iso: str) -> str:
    """14 Nov 2026."""
    when = date.fromisoformat(iso)
    return f"{when.day} {when:%b %Y}"


def count(number: int, noun: str) -> str:
    """A number with its noun: 1 receipt, 3 receipts."""
    if number == 1:
        return f"{number:,} {noun}"
    return f"{number:,} {noun}s"


def headed(page: Searched, noun: str, items: Sequence[str]) -> str:
    """A heading that says how well the list fits, then its items; honest when nothing fits or nothing is there."""
    # "purchases, newest first": how they are sorted is said of a list that is whole.
    things = noun.partition(",")[0]
    without = f" without {page.left_out}" if page.left_out else ""
    if not items:
        return f"There are no {noun}{without} to show."
    rows = "; ".join(items)
    more = f" ({len(items)} of {page.found})" if page.found > len(items) else ""
    match page.match:
        case "named":
            topic = page.topic[:1].upper() + page.topic[1:]
            return f"{topic} {noun}{without}{more}: {rows}.{_not_found(page, things)}"
        case "closest":
            return f'No {things} for "{page.topic}" were found. Other {things}{without}: {rows}.'
        case _:
            return f"{noun[:1].upper()}{noun[1:]}{without}{more}: {rows}."


def _not_found(page: Searched, things: str) -> str:
    """What was asked for beside the list, and is not there; empty where all was found."""
    if not page.not_found:
        return ""
    return f' No {things} for "{page.not_found}" were found.'


def _offer(offer: p.Offer) -> str:
    if offer.minimum > 1:
        need = f" (buy {offer.minimum})"
    else:
        need = ""
    if offer.retailers:
        where = f" at {' or '.join(offer.retailers)}"
    else:
        where = ""
    return f"{offer.title}{need}{where} until {day(offer.ends)}"


def offers(page: p.Offers) -> Rendering:
    return Rendering(
        headed(page, "offers", [_offer(offer) for offer in page.offers]),
        components("offer", page.offers),
    )


def expiring(page: p.Expiring) -> Rendering:
    items = [f"{_offer(offer)}" for offer in page.offers]
    if page.ending or not items:
        if page.within_days == 1:
            within = "day"
        else:
            within = f"{page.within_days} days"
        text = headed(page, f"offers that end within the next {within}", items)
    else:
        text = f"{_no_offer(page)} ends within the next {page.within_days} days. The first to end: {'; '.join(items)}."
    return Rendering(text, components("offer", page.offers))


def _no_offer(page: p.Expiring) -> str:
    match page.match:
        case "named":
            return f"No offer for {page.topic}"
        case "closest":
            return f'No offers for "{page.topic}" were found, and no other'
        case _:
            return "No offer"


def terms(page: p.Offers) -> Rendering:
    if not page.offers:
        return Rendering("There is no offer to show the terms of.")
    lines = [f"{offer.title} until {day(offer.ends)}. {offer.terms}" for offer in page.offers]
    if page.match == "closest":
        start = f'No offer for "{page.topic}" was found. The terms of another: '
    else:
        start = "Terms: "
    return Rendering(start + " ".join(lines), components("offer", page.offers))


def products(page: p.Products) -> Rendering:
    items = [
        f"{product.name} for {money(product.price_cents)}"
        + (f", {product.points:,} points on offer" if product.points else "")
        for product in page.products
    ]
    return Rendering(headed(page, "products", items), components("product", page.products))


def purchases(page: p.Purchases) -> Rendering:
    items = [
        f"{row.quantity} x {row.name} at {row.retailer} on {day(row.date)}, {money(row.price_cents)} each"
        for row in page.purchases
    ]
    if not items:
        return Rendering("There is no purchase on your receipts yet.")
    total = f" You bought {count(page.quantity, 'item')} for {money(page.total_cents)} in all."
    text = headed(page, "purchases, newest first", items) + (total if page.match == "named" else "")
    return Rendering(text, components("product", page.purchases))


def articles(page: p.Articles) -> Rendering:
    if page.match != "named" or not page.articles:
        return Rendering("No help article fits this question.")
    return Rendering(" ".join(f"{article.title}: {article.text}" for article in page.articles))


def balance(points: p.Balance) -> Rendering:
    text = f"You have {points.balance:,} points"
    if points.pending:
        text += f"; {points.pending:,} more are pending from {count(points.pending_receipts, 'receipt')}"
    text += f". In the last 30 days you earned {points.earned_30_days:,} and spent {points.spent_30_days:,}."
    return Rendering(text, components("points", [points]))


def redemptions(page: p.Redemptions) -> Rendering:
    items = [
        f"{row.name} for {row.points:,} points on {day(row.date)} ({row.status})"
        for row in page.redemptions
    ]
    if not items:
        return Rendering("You have not redeemed any points yet.")
    return Rendering(
        headed(page, "redemptions, newest first", items), components("reward", page.redemptions)
    )


def quote(page: p.Quote) -> Rendering:
    rewards = [
        f"{reward.name} costs {reward.points:,} points"
        + (
            f", leaving {page.balance - reward.points:,}"
            if reward.affordable
            else f", {reward.missing:,} more than you have"
        )
        for reward in page.rewards
    ]
    reach = f"You have {page.balance:,} points, enough for {page.affordable} of the rewards. "
    if page.match == "closest":
        start = f'There is no reward called "{page.topic}". '
    else:
        start = ""
    text = f"{start}{reach}{'; '.join(rewards)}.{_not_found(page, 'rewards')}"
    return Rendering(text, components("reward", page.rewards))


_METHODS = {"receipt": "receipts", "game": "games", "referral": "referrals", "bonus": "bonuses"}


def methods(page: p.Methods) -> Rendering:
    earned = [
        f"{row.points:,} from {_METHODS.get(row.method, row.method)} ({row.count})"
        for row in page.methods
        if row.points > 0
    ]
    costs = [
        f"{-row.points:,} points spent on rewards ({row.count})"
        for row in page.methods
        if row.points < 0
    ]
    if earned:
        text = f"Points earned: {join_words(earned)}. "
    else:
        text = "No points earned yet. "
    text += f"{join_words(costs)}. ".capitalize() if costs else ""
    return Rendering(f"{text}That leaves {page.balance:,} points.", components("points", [page]))


def _receipt(receipt: p.Receipt) -> str:
    text = (
        f"{receipt.retailer} on {day(receipt.date)}, {money(receipt.total_cents)}, {receipt.status}"
    )
    match receipt.status:
        case "accepted":
            return f"{text}, {receipt.points:,} points ({receipt.id})"
        case "pending":
            return f"{text}, {receipt.points:,} points expected ({receipt.id})"
        case "rejected":
            return f"{text} ({receipt.id}): {receipt.reason}".rstrip(".")


def receipts(page: p.Receipts) -> Rendering:
    if not page.receipts:
        return Rendering(
            "There is no receipt of that kind."
            if sum(page.counts.values())
            else "You have not sent a receipt yet."
        )
    states = [
        f"{page.counts[status]} {status}"
        for status in ("accepted", "pending", "rejected")
        if page.counts.get(status)
    ]
    total = f"You have {count(sum(page.counts.values()), 'receipt')}: {join_words(states)}. "
    return Rendering(
        total + headed(page, "receipts, newest first", [_receipt(r) for r in page.receipts]),
        components("receipt", page.receipts),
    )


def receipt(page: p.OneReceipt) -> Rendering:
    if page.receipt is None:
        return Rendering("There is no such receipt.")
    lines = [
        f"{line.quantity} x {line.name} {money(line.price_cents)}" for line in page.receipt.lines
    ]
    if page.match == "closest":
        start = f'No receipt fits "{page.topic}"; this is the newest. '
    else:
        start = ""
    return Rendering(
        f"{start}{_receipt(page.receipt)}. It lists {'; '.join(lines)}.",
        components("receipt", [page.receipt]),
    )


def matched(page: p.MatchedReceipt) -> Rendering:
    if page.receipt is None:
        return Rendering("There is no such receipt.")
    titles = [offer.title for offer in page.offers]
    near_misses = [f"{row.offer.title} ({row.why})" for row in page.missed]
    if page.match == "closest":
        text = f'No receipt fits "{page.topic}"; this is the newest. '
    else:
        text = ""
    text += f"{_receipt(page.receipt)}. "
    text += (
        f"It met {count(len(titles), 'offer')}: {join_words(titles)}."
        if titles
        else "It met no offer."
    )
    text += f" It missed {join_words(near_misses)}." if near_misses else ""
    return Rendering(text, components("receipt", [page.receipt]) + components("offer", page.offers))


def games(page: p.Games) -> Rendering:
    items = [
        f"{game.name} ({game.genre}) pays up to {game.points:,} points, the first "
        f"{game.first_points:,} at {game.steps} "
        f"{game.first_goal}, until {day(game.ends)}"
        for game in page.games
    ]
    return Rendering(headed(page, "games", items), components("game", page.games))


def progress(page: p.GameProgress) -> Rendering:
    items = [
        f"{game.name} is at {game.steps} {game.step} with {game.earned:,} points earned, "
        f"{game.next_points:,} more at {game.steps} {game.next_goal}, until {day(game.ends)}"
        for game in page.games
    ]
    if not items:
        return Rendering("You have not started a game yet.")
    return Rendering(headed(page, "games you play", items), components("game", page.games))


def restaurants(page: p.Restaurants) -> Rendering:
    items = [
        f"{row.name}, {row.cuisine}, {row.price}, rated {row.rating}, {row.miles} miles away at {row.address}"
        + (f", {row.points:,} points on offer" if row.points else "")
        for row in page.restaurants
    ]
    return Rendering(
        headed(page, f"restaurants near {page.city}", items),
        components("restaurant", page.restaurants),
    )


def restaurant_offers(page: p.RestaurantOffers) -> Rendering:
    items = [
        f"{o.title} ({o.cuisine}) when you spend {money(o.minimum_cents)}, until {day(o.ends)}"
        for o in page.offers
    ]
    return Rendering(headed(page, "restaurant offers", items), components("offer", page.offers))


def _store(store: p.Store) -> str:
    return (
        f"{store.name} ({store.kind}), {store.miles} miles away at {store.address}, open "
        f"{store.opens}:00 to {store.closes}:00"
    )


def _retailer(row: p.Retailer) -> str:
    if row.ereceipts:
        digital = "takes"
    else:
        digital = "does not take"
    return (
        f"{row.name} ({row.kind}) has {count(row.stores, 'store')}, {digital} eReceipts and has "
        f"{count(row.offers, 'offer')} of its own. The nearest: {_store(row.nearest)}."
    )


def retailers(page: p.Retailers) -> Rendering:
    if page.match == "closest":
        # What another store offers is no answer about this one.
        names = "; ".join(row.name for row in page.retailers)
        text = f'No retailer called "{page.topic}" was found. Other retailers: {names}.'
        return Rendering(text, components("retailer", page.retailers))
    if page.match == "all":
        start = "This is the one you use most. "
    else:
        start = ""
    text = " ".join(map(_retailer, page.retailers))
    return Rendering(
        f"{start}{text}{_not_found(page, 'retailers')}", components("retailer", page.retailers)
    )


def stores(page: p.Stores) -> Rendering:
    items = [_store(store) for store in page.stores]
    return Rendering(
        headed(page, f"stores near {page.city}", items), components("retailer", page.stores)
    )


WORDINGS: Mapping[tuple[str, str], Wording] = {
    ("shop", "offers"): Wording(p.Offers, offers),
    ("shop", "products"): Wording(p.Products, products),
    ("shop", "purchases"): Wording(p.Purchases, purchases),
    ("support", "articles"): Wording(p.Articles, articles),
    ("rewards", "balance"): Wording(p.Balance, balance),
    ("rewards", "redemptions"): Wording(p.Redemptions, redemptions),
    ("rewards", "quote"): Wording(p.Quote, quote),
    ("rewards", "by_method"): Wording(p.Methods, methods),
    ("ereceipts", "receipts"): Wording(p.Receipts, receipts),
    ("ereceipts", "match"): Wording(p.MatchedReceipt, matched),
    ("ereceipts", "receipt"): Wording(p.OneReceipt, receipt),
    ("play", "games"): Wording(p.Games, games),
    ("play", "progress"): Wording(p.GameProgress, progress),
    ("offer_details", "terms"): Wording(p.Offers, terms),
    ("offer_details", "expiring"): Wording(p.Expiring, expiring),
    ("restaurants", "restaurants"): Wording(p.Restaurants, restaurants),
    ("restaurants", "offers"): Wording(p.RestaurantOffers, restaurant_offers),
    ("retailer_context", "retailer"): Wording(p.Retailers, retailers),
    ("retailer_context", "stores"): Wording(p.Stores, stores),
}
"""The typing registry: (domain type, enricher id) -> payload and its wording."""
