"""The text beside a result: sentences for a model where rows are few, and JSON, which a script
reads, where they are many."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Result = Mapping[str, Any]
FEW = 60
"""Rows up to which a result is told in sentences."""
NONE_FITS = "No outlet fits what was asked for."
ROWS = ("outlets", "items", "results")
"""The fields of results that hold their rows."""


def text_of(skill: str, result: Result) -> str:
    """The text of a result. JSON stands in lines, for whoever reads the first twenty of them."""
    count = next((len(result[field]) for field in ROWS if field in result), 0)
    if skill in _WORDINGS and "error" not in result and count <= FEW:
        return "\n".join(_WORDINGS[skill](result))
    return json.dumps(result, indent=1, ensure_ascii=False)


def _list(result: Result) -> Iterator[str]:
    if not result["total"]:
        yield NONE_FITS
        return
    yield _count(result["total"], "outlets")
    for row in result["outlets"]:
        yield f"{_name(row, row['id'])} in {row['city']}: {row['cuisine']}, {row['status']}."


def _details(result: Result) -> Iterator[str]:
    row = result["outlet"]
    if row is None:
        yield "There is no such outlet."
        return
    yield f"{_name(row, row['id'])} stands at {row['street']} in {row['city']}."
    yield f"It sells {row['cuisine']}, has {row['seats']} seats, was opened in {row['opened']} and is {row['status']}."


def _menu(result: Result) -> Iterator[str]:
    if not result["found"]:
        yield "There is no such outlet."
        return
    if result["unmatched"]:
        looked_for = " ".join(result["unmatched"])
        yield f'No item called "{looked_for}" is on the menu of {result["outlet"]}.'
        if result["items"]:
            yield f"The closest there: {_count(result['total'], 'items')}"
    else:
        yield f"{result['outlet']}: {_count(result['total'], 'items')}"
    for row in result["items"]:
        yield (
            f"{row['name']} ({row['category']}{', vegetarian' * row['vegetarian']}) costs "
            f"{_dollars(row['price_cents'])}."
        )


def _analytics(result: Result) -> Iterator[str]:
    # Who asks for the most earned has to read what "1." is the first by.
    ranked_by = "ranked by score: what they took in a seat, times their rating."
    match result["total"]:
        case 0 if result["not_found"] or result["closed"]:
            pass
        case 0:
            yield f"{NONE_FITS} Closed ones have no figures."
        case 1:
            yield f"One outlet, {ranked_by}"
        case total:
            yield f"{total:,} outlets, {ranked_by}"
    for row in result["results"]:
        figures = (
            f"{row['orders']:,} orders, {_dollars(row['revenue_cents'])}, rated "
            f"{row['rating']}, score {row['score']:,}"
        )
        yield f"{row['rank']}. {_name(row, row['outlet_id'])} in {row['city']}: {figures}."
    if result["not_found"]:
        yield f"There is no such outlet: {', '.join(result['not_found'])}."
    if result["closed"]:
        yield f"Closed, and so without figures: {', '.join(result['closed'])}."


def _inspections(result: Result) -> Iterator[str]:
    yield _count(result["total"], "outlets")
    for row in result["outlets"]:
        yield f"{_name(row, row['id'])} in {row['city']}, open since {row['opened']}."


def _note(result: Result) -> Iterator[str]:
    yield (
        f"Noted. {_count(result['notes'], 'notes')}"
        if result["found"]
        else "There is no such outlet."
    )


def _call(result: Result) -> Iterator[str]:
    yield (
        f"The message was read out. {_count(result['calls'], 'calls')}"
        if result["found"]
        else "There is no such outlet."
    )


_WORDINGS: Mapping[str, Callable[[Result], Iterator[str]]] = {
    "outlet_list": _list,
    "outlet_details": _details,
    "outlet_menu": _menu,
    "outlet_analytics": _analytics,
    "outlet_inspections": _inspections,
    "outlet_note": _note,
    "outlet_call": _call,
}


def _name(row: Result, outlet_id: str) -> str:
    return f"{row['name']} ({outlet_id})"


def _count(number: int, things: str) -> str:
    return f"{number:,} {things} in all."


def _dollars(cents: int) -> str:
    return f"${cents / 100:,.2f}"
