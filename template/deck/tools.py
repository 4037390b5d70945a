"""The tools of this deck. The model reads a function's name, type hints and docstring, and nothing of its code."""

from typing import Literal

Weekday = Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]
LAPTOPS = {"ana": ("Model 14", 2027), "ben": ("Model 16", 2026)}
PRINTERS = {1: "Maple", 2: "Birch"}
ROOMS = {"Harbour": (4, {"Monday", "Tuesday"}), "Garden": (10, {"Tuesday", "Friday"})}


def find_laptop(owner: str) -> str:
    """Says which laptop somebody has, and in which year it is replaced."""
    model, year = LAPTOPS.get(owner.lower(), ("no laptop on our list", None))
    return f"{owner.capitalize()} has {model}" + (f"; it is replaced in {year}." if year else ".")


def find_printer(floor: int = 1) -> str:
    """Names the printer on a floor."""
    return (
        f"The printer on floor {floor} is {PRINTERS[floor]}."
        if floor in PRINTERS
        else f"Floor {floor} has no printer."
    )


def find_room(weekday: Weekday = "Monday", people: int = 2) -> str:
    """Names the rooms that are free on a weekday and large enough for so many people."""
    names = [name for name, (seats, days) in ROOMS.items() if seats >= people and weekday in days]
    return f"Free on {weekday} for {people}: {', '.join(names) or 'no room'}."


TOOLS = [find_laptop, find_printer, find_room]
