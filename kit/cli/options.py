"""What several commands are told, and what they open."""

import argparse
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from kit.home import find_deck

if TYPE_CHECKING:
    from kit.compose.deck import Deck
    from kit.settings import Settings
    from kit.stores.turn_store import TurnStore


def taping(command: argparse.ArgumentParser) -> None:
    """Adds --cassette, --record and --refresh."""
    command.add_argument(
        "--cassette",
        type=Path,
        metavar="FILE",
        help="a recording of every model and tool call; it is replayed",
    )
    how = command.add_mutually_exclusive_group()
    how.add_argument(
        "--record", dest="mode", action="store_const", const="record", help="make it anew"
    )
    how.add_argument(
        "--refresh",
        dest="mode",
        action="store_const",
        const="refresh",
        help="call what has changed, keep the rest",
    )


def deck_option(command: argparse.ArgumentParser, name: str = "--deck") -> None:
    """Adds the folder of a deck, by `--deck` or as an argument without a name."""
    nargs = None if name.startswith("-") else "?"
    words = "folder of the deck (default: the settings')"
    command.add_argument(name, type=find_deck, nargs=nargs, help=words)


def cases_argument(command: argparse.ArgumentParser, noun: str = "labelled dialogues") -> None:
    """Adds the file of cases."""
    words = f"{noun} (default: the project's cases.jsonl, else data/cases/switches.jsonl)"
    command.add_argument("cases", type=Path, nargs="?", help=words)


def read_deck(folder: Path | None = None) -> "tuple[Settings, Path, Deck]":
    """Reads the settings, and loads the deck of a folder, else theirs. Raises DeckError and SettingsError."""
    from kit.compose.deck import load_deck
    from kit.settings import Settings

    settings = Settings.read()
    path = Path(folder or settings.deck)
    return settings, path, load_deck(path, (), environment=settings.environment)


def open_stored(settings: "Settings") -> "closing[TurnStore]":
    """Opens the store that the settings name, until the end of a block. Raises StoreError and SettingsError."""
    from kit.stores.opening import open_store

    return closing(open_store(settings.store, documents=settings.documents))
