"""What the chat page shows of the consumer world: its people, and the cards and tables of what sub-agents found."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from kit.compose.page import ComponentCard, ComponentTable, Payload, Person, Renderer
from kit.worlds.consumer.wording import day, money
from kit.worlds.consumer.world import load_users
from kit.worlds.service.clients import URL


def people(data: Path, environment: Mapping[str, str]) -> list[Person]:
    """Returns everybody in the data folder with their city, and nobody where the services are
    elsewhere. Raises DataError."""
    if URL in environment:
        return []
    return [
        Person(
            tenant_id=user.tenant_id,
            user_id=user.id,
            name=f"{user.id} in {user.city}",
            location=user.city,
        )
        for user in load_users(data).values()
    ]


def card_each(draw: Callable[[Payload], ComponentCard]) -> Renderer:
    """Makes a renderer of a function that draws a single payload."""
    return lambda payloads: [draw(payload) for payload in payloads]


def _offer(row: Payload) -> ComponentCard:
    if _number(row, "minimum") > 1:
        minimum = f"Buy {row['minimum']}"
    else:
        minimum = ""
    if "minimum_cents" in row:
        spending = f"From {_money(row, 'minimum_cents')}"
    else:
        spending = ""
    where = _alternatives(row, "retailers") or _text(row, "cuisine")
    return ComponentCard(
        title=_text(row, "product") or _text(row, "title"),
        mark=_points(row),
        lines=(", ".join(filter(None, [minimum or spending, where])), _until(row)),
    )


def _product(row: Payload) -> ComponentCard:
    if "quantity" in row:
        purchase = f"{row['quantity']} bought at {_text(row, 'retailer')}, {_day(row, 'date')}"
    else:
        purchase = ""
    return ComponentCard(
        title=_text(row, "name"),
        mark=_money(row, "price_cents"),
        lines=(
            purchase or _text(row, "category").replace("_", " ").capitalize(),
            f"{_points(row)} on offer" if _points(row) else "",
        ),
    )


def _balance(row: Payload) -> ComponentCard:
    if _number(row, "pending"):
        pending = f"{_count(row, 'pending')} more pending"
    else:
        pending = ""
    month = f"Last 30 days: {_count(row, 'earned_30_days')} earned, {_count(row, 'spent_30_days')} spent"
    return ComponentCard(
        title=f"{_count(row, 'balance')} points",
        lines=(pending, month if "earned_30_days" in row else ""),
    )


def _points_by_method(payloads: Sequence[Payload]) -> Sequence[ComponentCard | ComponentTable]:
    """A table of where points came from, where that was asked; else a balance as a card."""
    methods = [method for row in payloads for method in _rows(row, "methods")]
    if not methods:
        return [_balance(row) for row in payloads]
    rows = tuple(
        (_text(m, "method").capitalize(), _count(m, "count"), _count(m, "points")) for m in methods
    )
    return [
        ComponentTable(columns=("From", "Times", "Points"), rows=rows, figures=frozenset((1, 2)))
    ]


def _reward(row: Payload) -> ComponentCard:
    if "affordable" in row:
        if row["affordable"]:
            line = "Within reach"
        else:
            line = f"{_count(row, 'missing')} points to go"
    else:
        line = ", ".join(filter(None, [_day(row, "date"), _text(row, "status")]))
    return ComponentCard(title=_text(row, "name"), mark=_points(row), lines=(line,))


def _game(row: Payload) -> ComponentCard:
    if "next_goal" in row:
        steps = _text(row, "steps")
        goal = f"{_count(row, 'next_points')} points at {steps} {_text(row, 'next_goal')}"
        return ComponentCard(
            title=_text(row, "name"),
            mark=f"{steps} {_text(row, 'step')}",
            lines=(goal, _until(row)),
        )
    lines = (_text(row, "genre").capitalize(), _until(row))
    return ComponentCard(title=_text(row, "name"), mark=f"up to {_points(row)}", lines=lines)


def _restaurant(row: Payload) -> ComponentCard:
    kind = ", ".join(filter(None, [_text(row, "cuisine"), _text(row, "price")])).capitalize()
    return ComponentCard(
        title=_text(row, "name"),
        mark=f"★ {_text(row, 'rating')}",
        lines=(kind, _where(row), _points(row)),
    )


def _retailer(row: Payload) -> ComponentCard:
    if isinstance(row.get("nearest"), Mapping):
        store = cast("Payload", row["nearest"])
    else:
        store = row
    if "opens" in store:
        hours = f"Open {_text(store, 'opens')}:00 to {_text(store, 'closes')}:00"
    else:
        hours = ""
    return ComponentCard(
        heading="Store",
        title=_text(row, "name"),
        mark=_text(row, "kind"),
        lines=(_where(store), hours),
    )


def _receipts(payloads: Sequence[Payload]) -> Sequence[ComponentTable]:
    """A single receipt by its items, several as a list."""
    if len(payloads) == 1 and payloads[0].get("lines"):
        lines = _rows(payloads[0], "lines")
        items = [
            (_text(line, "name"), _text(line, "quantity"), _money(line, "price_cents"))
            for line in lines
        ]
        total = ("Total", "", _money(payloads[0], "total_cents"))
        return [
            ComponentTable(
                columns=("Item", "Quantity", "Price"),
                rows=(*items, total),
                figures=frozenset((1, 2)),
            )
        ]
    rows = tuple(
        (
            _day(row, "date"),
            _text(row, "retailer"),
            _money(row, "total_cents"),
            _count(row, "points"),
            _text(row, "status"),
        )
        for row in payloads
    )
    return [
        ComponentTable(
            columns=("Date", "Store", "Total", "Points", "State"),
            rows=rows,
            figures=frozenset((2, 3)),
        )
    ]


RENDERERS: Mapping[str, Renderer] = {
    "offer": card_each(_offer),
    "product": card_each(_product),
    "points": _points_by_method,
    "reward": card_each(_reward),
    "game": card_each(_game),
    "restaurant": card_each(_restaurant),
    "retailer": card_each(_retailer),
    "receipt": _receipts,
}
"""Component type -> what draws it."""


def _text(row: Payload, name: str) -> str:
    value = row.get(name)
    if isinstance(value, str | int | float):
        return str(value)
    return ""


def _number(row: Payload, name: str) -> float:
    value = row.get(name)
    if isinstance(value, int | float):
        return value
    return 0


def _count(row: Payload, name: str) -> str:
    return f"{_number(row, name):,.0f}"


def _points(row: Payload) -> str:
    if _number(row, "points"):
        return f"{_count(row, 'points')} points"
    return ""


def _money(row: Payload, name: str) -> str:
    if name in row:
        return money(int(_number(row, name)))
    return ""


def _day(row: Payload, name: str) -> str:
    try:
        return day(_text(row, name))
    except ValueError:
        return _text(row, name)


def _until(row: Payload) -> str:
    if row.get("ends"):
        return f"Until {_day(row, 'ends')}"
    return ""


def _where(row: Payload) -> str:
    if "miles" in row:
        miles = f"{_text(row, 'miles')} miles"
    else:
        miles = ""
    return ", ".join(filter(None, [miles, _text(row, "address")]))


def _alternatives(row: Payload, name: str) -> str:
    return " or ".join(map(str, _items(row, name)))


def _rows(row: Payload, name: str) -> list[Payload]:
    return [cast("Payload", item) for item in _items(row, name) if isinstance(item, Mapping)]


def _items(row: Payload, name: str) -> Sequence[object]:
    value = row.get(name)
    if isinstance(value, list | tuple):
        return cast("Sequence[object]", value)
    return ()
