"""The arguments of a command that can be recorded and replayed."""

import argparse
from pathlib import Path


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
