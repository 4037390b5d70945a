"""`kit new`: a project of one's own, ready to run."""

import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any

from kit.core.display.command import command
from kit.core.errors import SettingsError

NAME = "PROJECT"
"""Stands in the template's files where a project's name goes."""


def add(commands: Any) -> None:
    """Adds the command to a parser's."""
    new = commands.add_parser(
        "new", help="write a project: deck, tools, cases, grid, notebook, test; it runs at once"
    )
    new.add_argument(
        "folder", type=Path, help="a folder that is not there yet; its name is the project's"
    )
    new.set_defaults(run=_new)


def _new(arguments: Namespace) -> int:
    from kit.home import HOME

    folder: Path = arguments.folder
    if folder.exists():
        raise SettingsError(f"{folder} is there already; choose another name")
    if not folder.name.replace("-", "").replace("_", "").isalnum():
        raise SettingsError(
            f"{folder.name!r} is no name for a project; use letters, digits, - and _"
        )
    shutil.copytree(HOME / "template", folder, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    # The name of the project stands in cards, notebook and test alike.
    for path in filter(Path.is_file, folder.rglob("*")):
        path.write_text(
            path.read_text(encoding="utf-8").replace(NAME, folder.name), encoding="utf-8"
        )
    print(f"{folder} is written; its README.md says what is where. Next:")
    print(f"  cd {folder}", f"  {command('check')}", f"  {command('app')}", sep="\n")
    return 0
