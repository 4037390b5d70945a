"""What to do about a store that cannot be used."""

import os
import sqlite3
from pathlib import Path

from sqlalchemy.exc import ResourceClosedError


def advice(store: str, error: Exception) -> str:
    """Returns a sentence on why the file of a store cannot be opened, read or written, and what helps."""
    folder = Path(store).absolute().parent
    problem = f"the store {store} cannot be used ({error}): "
    if not os.path.isdir(folder):
        return (
            problem + f"create the folder {folder}, let this user enter it, or choose another file."
        )
    if isinstance(error, (sqlite3.ProgrammingError, ResourceClosedError)):
        return problem + "open it again."
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
            return problem + "move it away, or choose another file."
        case sqlite3.SQLITE_BUSY:
            return (
                problem
                + "another process did not finish writing to it in time; try again, or stop that process."
            )
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return problem + f"make room on the disk that holds {folder}."
        case _:
            return (
                problem
                + f"give this user write permission on it and on the folder {folder}, or choose another file."
            )
