"""What sub-agents found, beside the text: offers, receipts, points ... as cards and tables. Payloads are text, never markup."""

from collections.abc import Callable, Iterable, Mapping
from html import escape
from typing import Any

from kit.core.event import Component, Event, ToolStarted
from kit.core.value import Value
from kit.ui.shared.plural import many
from kit.ui.shared.view import TurnView
from kit.worlds.consumer.wording import day, money

_HEADINGS = {"retailer": "Store"}
Payload = Mapping[str, Any]


class Card(Value):
    """One thing found."""

    title: str
    mark: str = ""
    """What counts most about it: points, a price, a state."""
    lines: tuple[str, ...] = ()


class Table(Value):
    """Things that are read down a column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    figures: frozenset[int] = frozenset()
    """Columns set flush right."""


def found(view: TurnView) -> list[tuple[str, list[Payload]]]:
    """Type -> payloads in the order they were shown, each thing once; of sub-agents that answered, and no others.

    Where one chose what to show by render_* calls, only that is shown.
    """
    answered = {step.span_id for step in view.steps if step.state == "ok"}
    rendering = {e.span_id for e in view.events if isinstance(e.body, ToolStarted) and e.body.tool.startswith("render_")}
    shown = [event for event in view.events if isinstance(event.body, Component) and _under(event, answered)]
    choosy = {event.body.agent for event in shown if isinstance(event.body, Component) and event.span_id in rendering}
    kinds: dict[str, dict[str, Payload]] = {}
    for place, event in enumerate(shown):
        body = event.body
        assert isinstance(body, Component)
        if event.span_id in rendering or body.agent not in choosy:
            kinds.setdefault(body.type, {})[str(body.payload.get("id", place))] = body.payload
    return [(kind, list(payloads.values())) for kind, payloads in kinds.items()]


def _under(event: Event, spans: set[str]) -> bool:
    return event.span_id in spans or event.parent_span_id in spans


def html(view: TurnView) -> str:
    """All of it as HTML, cards in one row and tables under it; empty when nothing was found.

    Folded away where the answer has said it all: nobody reads the same list twice.
    """
    cards: list[str] = []
    tables: list[str] = []
    named: list[str] = []
    for kind, payloads in found(view):
        table = _TABLES[kind](payloads) if kind in _TABLES else None
        if table is not None:
            tables.append(_table(_heading(kind), table))
            named += [row[place] for row in table.rows for place in table.figures if row[place]]
        else:
            drawn = [_CARDS.get(kind, _anything)(payload) for payload in payloads]
            cards += [_item(_heading(kind), card) for card in drawn]
            named += [card.title for card in drawn]
    if not cards and not tables:
        return ""
    text = f"{view.lead}\n{view.answer}"
    row = f'<ul tabindex="0" aria-label="What was found">{"".join(cards)}</ul>' if cards else ""
    folded = "" if all(name in text for name in named) else " open"
    counts = ((len(cards), "card"), (len(tables), "table"))
    head = "What was found: " + " and ".join(many(count, noun) for count, noun in counts if count)
    return f'<section class="found"><details{folded}><summary>{head}</summary>{row}{"".join(tables)}</details></section>'


def _heading(kind: str) -> str:
    return _HEADINGS.get(kind, kind.replace("_", " ").capitalize())


def _item(kind: str, card: Card) -> str:
    mark = f"<em>{escape(card.mark)}</em>" if card.mark else ""
    lines = "".join(f"<span>{escape(line)}</span>" for line in card.lines if line)
    return f'<li data-found="{escape(kind)}"><small>{escape(kind)} {mark}</small><b>{escape(card.title)}</b>{lines}</li>'


def _table(heading: str, table: Table) -> str:
    def cells(row: Iterable[str], tag: str, scope: str = "") -> str:
        right = ' class="figure"'
        return "".join(f"<{tag}{scope}{right if i in table.figures else ''}>{escape(c)}</{tag}>" for i, c in enumerate(row))

    rows = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in table.rows)
    head = cells(table.columns, "th", ' scope="col"')
    inner = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return (
        f'<div class="rows" data-found="{escape(heading)}" tabindex="0" role="group" aria-label="{escape(heading)}">{inner}</div>'
    )


def _offer(row: Payload) -> Card:
    need = f"Buy {row['minimum']}" if _number(row, "minimum") > 1 else ""
    spend = f"From {_money(row, 'minimum_cents')}" if "minimum_cents" in row else ""
    return Card(
        title=_text(row, "product") or _text(row, "title"),
        mark=_points(row),
        lines=(", ".join(filter(None, [need or spend, _listed(row, "retailers") or _text(row, "cuisine")])), _until(row)),
    )


def _product(row: Payload) -> Card:
    bought = f"{row['quantity']} bought at {_text(row, 'retailer')}, {_day(row, 'date')}" if "quantity" in row else ""
    return Card(
        title=_text(row, "name"),
        mark=_money(row, "price_cents"),
        lines=(
            bought or _text(row, "category").replace("_", " ").capitalize(),
            f"{_points(row)} on offer" if _points(row) else "",
        ),
    )


def _points_card(row: Payload) -> Card:
    pending = f"{_count(row, 'pending')} more pending" if _number(row, "pending") else ""
    moved = f"Last 30 days: {_count(row, 'earned_30_days')} earned, {_count(row, 'spent_30_days')} spent"
    return Card(title=f"{_count(row, 'balance')} points", lines=(pending, moved if "earned_30_days" in row else ""))


def _reward(row: Payload) -> Card:
    if "affordable" in row:
        line = "Within reach" if row["affordable"] else f"{_count(row, 'missing')} points to go"
    else:
        line = ", ".join(filter(None, [_day(row, "date"), _text(row, "status")]))
    return Card(title=_text(row, "name"), mark=_points(row), lines=(line,))


def _game(row: Payload) -> Card:
    if "next_goal" in row:
        steps = _text(row, "steps")
        goal = f"{_count(row, 'next_points')} points at {steps} {_text(row, 'next_goal')}"
        return Card(title=_text(row, "name"), mark=f"{steps} {_text(row, 'step')}", lines=(goal, _until(row)))
    return Card(title=_text(row, "name"), mark=f"up to {_points(row)}", lines=(_text(row, "genre").capitalize(), _until(row)))


def _restaurant(row: Payload) -> Card:
    kind = ", ".join(filter(None, [_text(row, "cuisine"), _text(row, "price")]))
    return Card(title=_text(row, "name"), mark=f"★ {_text(row, 'rating')}", lines=(kind.capitalize(), _where(row), _points(row)))


def _retailer(row: Payload) -> Card:
    nearest = row.get("nearest")
    store: Payload = nearest if isinstance(nearest, Mapping) else row
    hours = f"Open {_text(store, 'opens')}:00 to {_text(store, 'closes')}:00" if "opens" in store else ""
    return Card(title=_text(row, "name"), mark=_text(row, "kind"), lines=(_where(store), hours))


def _anything(row: Payload) -> Card:
    title = _text(row, "title") or _text(row, "name") or _text(row, "id") or "Found"
    lines = tuple(
        f"{key.replace('_', ' ').capitalize()}: {value}" for key, value in row.items() if isinstance(value, str | int | float)
    )
    return Card(title=title, lines=lines[:4])


def _receipts(rows: list[Payload]) -> Table | None:
    if len(rows) == 1 and rows[0].get("lines"):
        lines: list[Payload] = [line for line in rows[0]["lines"] if isinstance(line, Mapping)]
        items = [(_text(line, "name"), _text(line, "quantity"), _money(line, "price_cents")) for line in lines]
        total = ("Total", "", _money(rows[0], "total_cents"))
        return Table(columns=("Item", "Quantity", "Price"), rows=(*items, total), figures=frozenset((1, 2)))
    return Table(
        columns=("Date", "Store", "Total", "Points", "State"),
        rows=tuple(
            (_day(row, "date"), _text(row, "retailer"), _money(row, "total_cents"), _count(row, "points"), _text(row, "status"))
            for row in rows
        ),
        figures=frozenset((2, 3)),
    )


def _methods(rows: list[Payload]) -> Table | None:
    """Points by where they came from; a balance is a card."""
    methods = [method for row in rows for method in row.get("methods") or () if isinstance(method, Mapping)]
    if not methods:
        return None
    made = tuple((_text(m, "method").capitalize(), _count(m, "count"), _count(m, "points")) for m in methods)
    return Table(columns=("From", "Times", "Points"), rows=made, figures=frozenset((1, 2)))


_CARDS: Mapping[str, Callable[[Payload], Card]] = {
    "offer": _offer,
    "product": _product,
    "points": _points_card,
    "reward": _reward,
    "game": _game,
    "restaurant": _restaurant,
    "retailer": _retailer,
}
_TABLES: Mapping[str, Callable[[list[Payload]], Table | None]] = {"receipt": _receipts, "points": _methods}


def _text(row: Payload, name: str) -> str:
    value = row.get(name)
    return str(value) if isinstance(value, str | int | float) else ""


def _number(row: Payload, name: str) -> float:
    value = row.get(name)
    return value if isinstance(value, int | float) else 0


def _count(row: Payload, name: str) -> str:
    return f"{_number(row, name):,.0f}"


def _points(row: Payload) -> str:
    return f"{_count(row, 'points')} points" if _number(row, "points") else ""


def _money(row: Payload, name: str) -> str:
    return money(int(_number(row, name))) if name in row else ""


def _day(row: Payload, name: str) -> str:
    try:
        return day(_text(row, name))
    except ValueError:
        return _text(row, name)


def _until(row: Payload) -> str:
    return f"Until {_day(row, 'ends')}" if row.get("ends") else ""


def _where(row: Payload) -> str:
    miles = f"{_text(row, 'miles')} miles" if "miles" in row else ""
    return ", ".join(filter(None, [miles, _text(row, "address")]))


def _listed(row: Payload, name: str) -> str:
    values = row.get(name)
    return " or ".join(map(str, values)) if isinstance(values, list | tuple) else ""
