"""A deck as it was at a git revision: git holds the truth about cards and blocks, so going back needs no other store."""

import io
import subprocess
import tempfile
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from kit.compose.deck import Deck, load_deck
from kit.core.errors import DeckError


def load_deck_at(
    revision: str,
    path: str | Path,
    known: Collection[str] | None = None,
    environment: str = "default",
    flags: Mapping[str, bool] | None = None,
) -> Deck:
    """Loads the deck at `path` as it was at `revision` (a commit, a tag, HEAD~2); the working tree is left alone.

    The folder beside it (blocks, models.yaml, settings) is taken from the same revision. The other arguments are load_deck's.
    Raises DeckError when git knows no such revision or folder, and with every fault of the old deck; faults name files as
    `revision:path`.
    """
    folder = Path(path).absolute()
    title = f"no deck of {folder.name!r} at revision {revision!r}:"
    if revision.startswith("-"):
        raise DeckError(title, ["a revision does not begin with a dash; give a commit, a tag or a branch"])
    top = Path(_git(_there(folder), title, "rev-parse", "--show-toplevel").decode().strip())
    beside = folder.parent.resolve().relative_to(top.resolve())
    archive = _git(top, title, "archive", "--format=zip", revision, "--", beside.as_posix())
    with tempfile.TemporaryDirectory() as scratch:
        with zipfile.ZipFile(io.BytesIO(archive)) as files:
            files.extractall(scratch)
        try:
            deck = load_deck(Path(scratch) / beside / folder.name, known, environment, flags)
        except DeckError as error:
            faults = [fault.replace(f"{scratch}/", f"{revision}:") for fault in error.faults]
            raise DeckError(f"deck {folder.name!r} at revision {revision!r} cannot be used:", faults) from None
    return replace(deck, warnings=tuple(warning.replace(f"{scratch}/", f"{revision}:") for warning in deck.warnings))


def _there(folder: Path) -> Path:
    """The deepest folder of a path that still is there: a deck that was removed can be loaded too."""
    return next(parent for parent in (folder, *folder.parents) if parent.is_dir())


def _git(folder: Path, title: str, *arguments: str) -> bytes:
    try:
        return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=True).stdout
    except FileNotFoundError as error:
        raise DeckError(title, ["git is not there; install it"]) from error
    except subprocess.CalledProcessError as error:
        complaint = error.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise DeckError(title, [f"git says: {complaint}; give a revision that holds this folder"]) from error
