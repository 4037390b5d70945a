"""Where the shipped decks, data and app lie: at the root of a checkout, or inside the package once it is installed."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_BUNDLE = _PACKAGE / "shipped"
IS_CHECKOUT = not _BUNDLE.is_dir()
HOME = _PACKAGE.parent if IS_CHECKOUT else _BUNDLE
"""Holds app.py, cards/, data/ and template/."""


def find_deck(folder: str | Path) -> Path:
    """Returns this folder, or the shipped one of that name, such as `cards/outlets`, where there is none here."""
    path = Path(folder)
    shipped = HOME / folder
    if path.exists() or not shipped.is_dir():
        return path
    return shipped
