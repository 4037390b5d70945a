"""What several commands are told, and what they open."""

import argparse
from contextlib import closing
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.core.errors import DataError, nearest
from kit.home import find_deck

if TYPE_CHECKING:
    from kit.compose.deck import Deck
    from kit.settings import Settings
    from kit.stores.turn_store import TurnStore


WIDEST = 8
"""Most sub-agents that `--cap` lets one turn call."""
COMMAND = "command"
"""How the help names the place of a command."""


class CommandParser(argparse.ArgumentParser):
    """A parser that answers a mistyped command with the near one, and with the commands that its help lists.

    argparse itself lists every name that works, those as well that a help leaves out.
    """

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self.unlisted: dict[str, str] = {}
        """An earlier name of a command -> the words that stand for it now."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.metavar != COMMAND or action.choices is None or value in action.choices:
            super()._check_value(action, value)
            return
        names = [name for name in action.choices if name not in self.unlisted]
        near = get_close_matches(value, [*names, *self.unlisted.values()], n=1, cutoff=0.5)
        hint = f": did you mean {near[0]!r}?" if near else ";"
        self.error(f"unknown command {value!r}{hint} the commands are {', '.join(names)}")


def cap_of(text: str) -> int:
    """Returns what `--cap` says. Raises ArgumentTypeError, which argparse prints, for anything but 1 to WIDEST."""
    if text.isdecimal() and 0 < int(text) <= WIDEST:
        return int(text)
    raise argparse.ArgumentTypeError(
        f"{text!r} is no cap: give 1 to {WIDEST}, the most sub-agents one turn may call"
    )


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


def open_existing(settings: "Settings") -> "closing[TurnStore]":
    """The same for whoever only looks. Raises StoreError where there is none: an empty one would look as if all were
    quiet."""
    from kit.core.errors import StoreError
    from kit.core.secret import is_url

    is_file = settings.store != ":memory:" and not is_url(settings.store)
    if is_file and not Path(settings.store).is_file():
        raise StoreError(
            f"there is no store at {settings.store}: ask something first, or correct KIT_STORE"
        )
    return open_stored(settings)


def check_tenant(store: "TurnStore", tenant: str | None) -> None:
    """Raises DataError for a tenant that no stored turn is of, where other tenants have some."""
    if tenant is None or store.turns(tenant_id=tenant, limit=1):
        return
    tenants = {name for name, _ in store.tally().users}
    if tenants:
        raise DataError(
            f"no turn of tenant {tenant!r} is in this store: {nearest(tenant, tenants)}"
        )
