"""A deck as it was at a git revision: git holds the truth about cards and blocks, so going back
needs no other store."""

import io
import os
import re
import subprocess
import tempfile
import zipfile
from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path

from kit.compose.deck import Deck, load_deck
from kit.compose.read import card_file, file_with_id
from kit.core.errors import DeckError, KitError


class RevisionError(KitError):
    """A revision that git cannot give."""


def load_deck_at(
    revision: str,
    path: str | Path,
    known: Collection[str] | None = None,
) -> Deck:
    """Loads the deck at `path` as it was at `revision` (a commit, a tag, HEAD~2); the working tree
    is left alone.

    The folder beside it (blocks, models.yaml, settings) is taken from the same revision. `known` is
    load_deck's. Raises DeckError when git knows no such revision or folder, and with
    every fault of the old deck; faults name files as `revision:path`.
    """
    name = Path(path).absolute().name
    scratch = ""
    try:
        with checkout(Path(path), revision) as (root, folder):
            scratch = f"{root}/"
            deck = load_deck(folder, known)
    except RevisionError as error:
        raise DeckError(f"no deck of {name!r} at revision {revision!r}:", [str(error)]) from error
    except DeckError as error:
        faults = [fault.replace(scratch, f"{revision}:") for fault in error.faults]
        raise DeckError(f"deck {name!r} at revision {revision!r} cannot be used:", faults) from None
    warnings = [warning.replace(scratch, f"{revision}:") for warning in deck.warnings]
    return replace(deck, warnings=tuple(warnings))


@contextmanager
def checkout(folder: Path, revision: str) -> Generator[tuple[Path, Path]]:
    """Lends a folder as it was at a revision, with what lay beside it: the root of a scratch tree,
    and the folder in it.

    A folder that is not there any more is found too. Raises RevisionError, which says what to do.
    """
    _check_revision(revision)
    top = Path(git(folder, "rev-parse", "--show-toplevel").decode().strip())
    beside = folder.absolute().parent.resolve().relative_to(top.resolve())
    archive = git(top, "archive", "--format=zip", revision, "--", beside.as_posix())
    with tempfile.TemporaryDirectory() as scratch:
        with zipfile.ZipFile(io.BytesIO(archive)) as files:
            files.extractall(scratch)
        yield Path(scratch), Path(scratch) / beside / folder.absolute().name


def part_at(folder: Path, part_id: str, revision: str, key: str | None = None) -> tuple[Path, str]:
    """Returns the file of a deck's card or block, and its text as it was at a revision; with a `key` the text as it
    is, but for what it said there under this key, such as `sub_agents`.

    The file need not be there any more. Raises RevisionError.
    """
    with checkout(folder, revision) as (_, old_folder):
        old = card_file(old_folder, part_id)
        if old is None:
            old = file_with_id(sorted(old_folder.parent.glob("blocks/**/*.md")), part_id)
        if old is None:
            raise RevisionError(f"{revision} holds no card and no block {part_id!r} of this deck")
        path = folder / Path(os.path.relpath(old, old_folder))
        text = old.read_text(encoding="utf-8")
    if key is None:
        return path, text
    now = path.read_text(encoding="utf-8") if path.exists() else text
    return path, now.replace(
        _section(now, key, path.name), _section(text, key, f"{revision}:{path.name}")
    )


def _section(text: str, key: str, name: str) -> str:
    """Returns the lines of a YAML file that stand under a key: up to the next one, or a comment before it."""
    match = re.search(rf"^{re.escape(key)}:.*\n?(?:[ \t-].*\n?|\n)*", text, re.M)
    if match is None:
        raise RevisionError(
            f"{name} says nothing under {key!r}; leave --key out to take the whole file"
        )
    return match[0]


def check_clean(path: Path) -> None:
    """Raises RevisionError for a file with changes that are not committed, and where there is no git."""
    if git(path.parent, "status", "--porcelain", "--", str(path.absolute())).strip():
        raise RevisionError(
            f"{path.name} has changes that are not committed, and they would be lost: commit or undo them first"
        )


def committed_on(folder: Path, revision: str) -> date:
    """Returns the day of a revision's commit. Raises RevisionError."""
    _check_revision(revision)
    commit = f"{revision}^{{commit}}"
    day = git(folder, "show", "-s", "--format=%cs", "--end-of-options", commit)
    return date.fromisoformat(day.decode().strip())


def _check_revision(revision: str) -> None:
    """Raises RevisionError for what git would take for an option, and for what no command line can hold."""
    if revision.startswith("-"):
        raise RevisionError(
            "a revision does not begin with a dash; give a commit, a tag or a branch"
        )
    if "\0" in revision or revision.encode("utf-8", "replace").decode() != revision:
        raise RevisionError(
            "a revision holds neither a zero byte nor half of a character; give a commit, a tag or a branch"
        )


def git(folder: Path, *arguments: str) -> bytes:
    # A folder that was removed since lies in the tree of one that is still there.
    folders = (folder.absolute(), *folder.absolute().parents)
    existing = next(parent for parent in folders if parent.is_dir())
    command = ["git", "-C", str(existing), *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=True).stdout
    except FileNotFoundError as error:
        raise RevisionError("git is not there; install it") from error
    except subprocess.CalledProcessError as error:
        complaint = error.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        if "not a git repository" in complaint:
            raise RevisionError(
                f"{existing} is in no git checkout ({complaint}); run it in one"
            ) from error
        raise RevisionError(
            f"git says: {complaint}; give a revision that holds this folder"
        ) from error
