"""`python -m kit ...`: each command imports what it needs. Errors end as one sentence and exit code 2."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from kit.cli import (
    app,
    ask,
    bench,
    conform,
    deck,
    doctor,
    evolve,
    forget,
    measure,
    migrate,
    monitor,
    project,
    report,
    serve,
    stored,
    verdict,
    worker,
)
from kit.cli.options import COMMAND, CommandParser
from kit.core.display.command import command
from kit.core.display.distribution import NAME, VERSION
from kit.core.errors import KitError

EXIT_CODES = (
    "Exit codes: 0, it is done, or the answer is yes; 1, the answer is no, or a turn or a grid "
    "did not come to its end; "
    "2, it could not be begun or was stopped, and stderr says why; 3, a turn waits for its user's answer."
)

OLD_NAMES = {"routing": "deck-routing"}
"""Command of a group -> the name that it had by itself, where that was another."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns an exit code."""
    arguments = command_parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except KitError as error:
        print(f"kit: {error}", file=sys.stderr)
    # A full disk, or a folder that nobody may write to, is no fault of the kit.
    except OSError as error:
        print(
            f"kit: {error.strerror or error}: {error.filename or ''}".rstrip(": "), file=sys.stderr
        )
    except KeyboardInterrupt:
        print("kit: stopped", file=sys.stderr)
    return 2


def command_parser() -> argparse.ArgumentParser:
    """Returns the parser of every command; the site's page on commands is written from it."""
    description = "Orchestrate LLM sub-agents from declarative cards."
    parser = CommandParser(prog=command(), description=description, epilog=EXIT_CODES)
    parser.add_argument("--version", action="version", version=f"{NAME} {VERSION}")
    commands = parser.add_subparsers(required=True, metavar=COMMAND)
    for room in (
        project,
        ask,
        app,
        serve,
        worker,
        monitor,
        deck,
        evolve,
        doctor,
        measure,
        bench,
        conform,
        verdict,
        report,
        migrate,
    ):
        room.add(commands)
    cards = _add_group(commands, "cards", "what routing, tools and promotion say of a deck's cards")
    deck.add_to_cards(cards)
    measure.add_to_cards(cards)
    data = _add_group(commands, "data", "what is stored of turns, and what people say of them")
    stored.add_to_data(data)
    forget.add_to_data(data)
    monitor.add_to_data(data)
    # Without a help text they are not listed: they stay for whoever calls them, until version 0.2.
    for group_name, group in (("cards", cards), ("data", data)):
        grouped_commands: dict[str, CommandParser] = group.choices
        for name, grouped in grouped_commands.items():
            old_name = OLD_NAMES.get(name, name)
            commands.add_parser(old_name, parents=[grouped], add_help=False)
            parser.unlisted[old_name] = f"{group_name} {name}"
    return parser


def _add_group(commands: Any, name: str, words: str) -> Any:
    return commands.add_parser(name, help=words).add_subparsers(required=True, metavar=COMMAND)
