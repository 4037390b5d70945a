"""What each skill looks up: a function of a tenant and of arguments that fit the skill's input schema."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kit.worlds.outlets.rows import Item, Outlet, menu_of, outlets_of, sales_of
from kit.worlds.service.search import CHAT, NOISE, query_terms, tokens

Arguments = Mapping[str, Any]
Result = dict[str, Any]
_SHORT = {"id", "name", "city", "cuisine", "status"}
_TALK_OF_MENUS = CHAT | {
    *(
        "card",
        "cost",
        "costs",
        "dish",
        "dishes",
        "eat",
        "entire",
        "food",
        "full",
        "item",
        "items",
        "menu",
        "order",
    ),
    *("outlet", "price", "prices", "read", "serve", "serves", "whole"),
}
"""Words that every question about a menu shares: none of them is the name of an item."""


def list_outlets(tenant: str, arguments: Arguments) -> Result:
    """Outlets by city, kind of food and status, in the order of their ids."""
    rows = [outlet for outlet in outlets_of(tenant).values() if _fits(outlet, arguments)]
    start = arguments.get("offset", 0)
    page = rows[start : start + arguments.get("limit", 5)]
    return {"total": len(rows), "outlets": [outlet.model_dump(include=_SHORT) for outlet in page]}


def describe_outlet(tenant: str, arguments: Arguments) -> Result:
    """All that is known of one outlet."""
    outlet = outlets_of(tenant).get(arguments["outlet_id"])
    return {"found": outlet is not None, "outlet": outlet.model_dump() if outlet else None}


def read_menu(tenant: str, arguments: Arguments) -> Result:
    """The menu of one outlet: all of it, or the items of a category or with words."""
    outlet = outlets_of(tenant).get(arguments["outlet_id"])
    id_words = {*tokens(arguments["outlet_id"]), *arguments["outlet_id"].split("-")}
    words: list[str] = []
    for word in query_terms(arguments.get("query", ""), NOISE | _TALK_OF_MENUS):
        if word not in id_words and word not in words:
            words.append(word)
    rows = [
        item
        for item in (menu_of(outlet.id) if outlet else ())
        if arguments.get("category", item.category) == item.category
    ]
    if words:
        counts = [len(_words_of(item).intersection(words)) for item in rows]
    else:
        counts = [1] * len(rows)
    most = max((1, *counts))
    has_all = bool(rows) and most == len(words)
    items = [item.model_dump() for item, count in zip(rows, counts, strict=True) if count == most]
    return {
        "found": outlet is not None,
        "outlet": outlet.name if outlet else "",
        "total": len(items),
        "items": items,
        "unmatched": [] if has_all and items else words,
    }


def _words_of(item: Item) -> set[str]:
    words = set(tokens(f"{item.name} {item.category}"))
    if item.vegetarian:
        words.add("vegetarian")
    return words


def rank_outlets(tenant: str, arguments: Arguments) -> Result:
    """Open outlets by what they earned a seat and how they were rated, in their last weeks."""
    outlets = outlets_of(tenant)
    ids: Iterable[str] = dict.fromkeys(arguments.get("outlet_ids", outlets))
    rows = [outlets[key] for key in ids if key in outlets and _fits(outlets[key], arguments)]
    sales = [
        (outlet, sales_of(outlet, arguments.get("weeks", 4)))
        for outlet in rows
        if outlet.status != "closed"
    ]
    scores = [
        (round(sold.revenue_cents / outlet.seats * sold.rating / 5 / 100, 2), outlet, sold)
        for outlet, sold in sales
    ]
    if arguments.get("order") == "worst":
        sign = 1
    else:
        sign = -1
    ranked = sorted(scores, key=lambda row: (sign * row[0], row[1].id))
    results = [
        {
            "rank": place,
            "outlet_id": outlet.id,
            "name": outlet.name,
            "city": outlet.city,
            "score": score,
            **sold.model_dump(),
        }
        for place, (score, outlet, sold) in enumerate(ranked[: arguments.get("limit", 5)], start=1)
    ]
    return {
        "total": len(ranked),
        "results": results,
        "not_found": [key for key in ids if key not in outlets],
        "closed": [row.id for row in rows if row.status == "closed" and "outlet_ids" in arguments],
    }


def list_inspections(tenant: str, arguments: Arguments) -> Result:
    """The outlets of a city that an inspector visits next: the oldest first."""
    rows = sorted(
        (
            row
            for row in outlets_of(tenant).values()
            if _fits(row, arguments) and row.status == "active"
        ),
        key=lambda row: (row.opened, row.id),
    )
    page = rows[: arguments.get("limit", 5)]
    return {
        "total": len(rows),
        "outlets": [row.model_dump(include={"id", "name", "city", "opened"}) for row in page],
    }


def _fits(outlet: Outlet, arguments: Arguments) -> bool:
    names = (
        (arguments.get(field), getattr(outlet, field)) for field in ("city", "cuisine", "status")
    )
    return all(not name or name.casefold() == value.casefold() for name, value in names)


LOOKUPS: Mapping[str, Callable[[str, Arguments], Result]] = {
    "outlet_list": list_outlets,
    "outlet_details": describe_outlet,
    "outlet_menu": read_menu,
    "outlet_analytics": rank_outlets,
    "outlet_inspections": list_inspections,
}
"""Skill id -> what serves it."""
