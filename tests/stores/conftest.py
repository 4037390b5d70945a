"""Each database that a store can be in: a test of the store runs over all of them unless it is about one."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kit.stores.opening import open_store
from kit.stores.sqlite import SqliteStore
from kit.stores.turn_store import TurnStore
from tests.postgres import server

DATABASES = ("sqlite", "postgresql")


def new_place(database: str, folder: Path | None = None) -> str:
    """Names an empty store of a test's own, in memory where there is no folder for a file."""
    if database == "postgresql":
        return server().new_url()
    return str(folder / "kit.sqlite") if folder else ":memory:"


@pytest.fixture(params=DATABASES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return new_place(request.param, tmp_path)


@pytest.fixture
def store(place: str) -> Iterator[TurnStore]:
    with closing(open_store(place)) as opened:
        yield opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kit.sqlite"


@pytest.fixture
def file(path: Path) -> Iterator[SqliteStore]:
    """A store of SQLite's alone."""
    with closing(SqliteStore(path)) as opened:
        yield opened
