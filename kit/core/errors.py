"""What raises, and who can fix it. Faults while serving a turn do not raise: they are Failure values."""

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import Any


class KitError(Exception):
    """Root of every error the kit raises; `str()` is fit to show to a person."""


class DeckError(KitError):
    """Faults in a deck, all of them at once."""

    def __init__(self, title: str, faults: Sequence[str]):
        self.faults = tuple(faults)
        super().__init__("\n".join([title, *(f"  - {fault}" for fault in faults)]))


class CodeError(KitError):
    """Code that a deck names and that cannot be imported, or is not what the deck needs."""


class UnknownId(KitError):
    """An id that is not registered; `when_none` says what to do where nothing is."""

    def __init__(
        self, noun: str, unknown_id: str, candidates: Collection[str], when_none: str = ""
    ):
        hint = nearest(unknown_id, candidates)
        if when_none and not candidates:
            hint = when_none
        super().__init__(f"unknown {noun} {unknown_id!r}: {hint}")


class BindError(KitError):
    """A deck that cannot be bound to models and tools."""


class SettingsError(KitError):
    """A setting that cannot be used."""


class DataError(KitError):
    """A data file that is missing or broken."""


class SessionError(KitError):
    """A session id that another principal already uses."""


class ClosedError(KitError):
    """A kit that is closing and begins no more turns."""


class StoreError(KitError):
    """The store cannot be opened, read or written."""


class StoreBusy(StoreError):
    """The store is being written by somebody else at this moment."""


class StorageSchemaError(StoreError):
    """A document that its schema refuses; nothing of it was written."""


class VersionConflict(StoreError):
    """A document that somebody else wrote since it was read."""


class MemoryLockError(StoreError):
    """A memory that another task holds, and did not give back in time."""


class ShapeError(KitError):
    """A text that is no shape in the notation of kit.core.schema.shape."""


class EmbedderError(KitError):
    """What makes vectors of texts gave none: memories are then found by their words alone."""


class UpstreamError(KitError):
    """An upstream service cannot be reached, or answered outside its contract."""


class FaultError(KitError):
    """A fault to inject that cannot be read, or that this kit was not opened for."""


class PictureError(KitError):
    """A picture that cannot be taken with a message."""


class ForkError(KitError):
    """A turn that cannot be forked where it is asked for."""


class ResumeError(KitError):
    """A turn that cannot go on from where it stands."""


class CassetteError(KitError):
    """A recording that is missing, broken, or does not fit the request."""


FOREIGN = (Exception, SystemExit)
"""What somebody else's code may raise without ending the process: a library may call `sys.exit`."""
LONGEST = 4_000
"""Characters of an exception that a trace keeps."""
STOP = "stopped"
"""How the line begins about what was ended from outside: by a deadline, by its user, or with what it is part of."""
_ENCODED = re.compile(r"[A-Za-z0-9+/]{200,}={0,2}")


def error_text(error: BaseException) -> str:
    """Returns the words of an exception, for a trace; keys, and a picture that a provider quotes back, are left out."""
    # Loads pydantic, which whoever only raises does not need.
    from kit.core.secret import without_keys

    # Cut first: a pattern that is searched in megabytes of an endpoint's page takes seconds.
    return without_keys(_ENCODED.sub("[bytes]", str(error)[:LONGEST]))


def describe_error(error: BaseException) -> str:
    """Returns the class and the words of an exception, for a trace."""
    text = error_text(error)
    name = type(error).__name__
    if name == "CancelledError":
        name = STOP
    return f"{name}: {text}" if text else name


def field_faults(faults: Iterable[Any], whole: str = "") -> list[str]:
    """Words what pydantic found as `field: what is wrong`; `whole` stands for no field. No value is repeated."""
    sentences: list[str] = []
    for fault in faults:
        field = ".".join(map(str, fault["loc"])) or whole
        sentences.append(f"{field}: {fault['msg']}")
    return sentences


def slip_in(
    names: Collection[str], candidates: Collection[str], alike: float
) -> tuple[str, str] | None:
    """Returns the first of these names that is none of the known ones but nearly one that is not among them, and
    that one."""
    for name in names:
        if name not in candidates:
            near = get_close_matches(name.casefold(), candidates, n=1, cutoff=alike)
            if near and near[0] not in names:
                return name, near[0]
    return None


def nearest(name: str, candidates: Iterable[str], count: int = 3) -> str:
    """Words a hint: the known ids closest to `wanted`, else the first few known ones."""
    ids = sorted(candidates)
    close = get_close_matches(name, ids, n=count, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(map(repr, close))}?"
    if not ids:
        return "none is registered"
    ellipsis = " ..." if len(ids) > 8 else ""
    return f"known are {', '.join(ids[:8])}{ellipsis}"
