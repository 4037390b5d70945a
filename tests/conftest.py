"""Async tests run on the virtual clock, where waiting costs nothing; `@pytest.mark.realtime` takes a real loop."""

import asyncio
import gc
import inspect
import ssl
import sys
import tracemalloc
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from kit import cli
from kit.compose import deck
from kit.runtime.clock import run_virtual
from kit.settings import HOME
from kit.stores.engines.database import Database
from tests import postgres
from tests.loopback_openai import Loopback, loopback

OPENERS = (
    str(Path(__file__).parent),
    *(str(HOME / "kit/bench" / name) for name in ("workload.py", "peers.py", "routing.py")),
)
"""Code whose stores end with a test: that of the tests, and that of benchmarks and studies, whose
stores in memory last as long as their process."""

STORES = str(HOME / "kit/stores")
read_deck_of_folder = deck.load_deck
SHIPPED = (HOME / "cards").resolve()


@cache
def read_once(
    folder: Path,
    known: frozenset[str] | None,
    environment: str,
    flags: tuple[tuple[str, bool], ...],
) -> deck.Deck:
    return read_deck_of_folder(folder, known, environment, dict(flags))


def load_deck(
    path: str | Path,
    known: Collection[str] | None = None,
    environment: str = "default",
    flags: Mapping[str, bool] = {},
) -> deck.Deck:
    """Loads a deck, a shipped one only once in a process: a deck is a value, no test writes into cards/,
    and reading its cards and phrases again for each kit took a tenth of all tests."""
    if SHIPPED not in Path(path).resolve().parents:
        return read_deck_of_folder(path, known, environment, flags)
    ids = None if known is None else frozenset(known)
    return read_once(Path(path), ids, environment, tuple(flags.items()))


deck.load_deck = load_deck

# `make sweeps` plays all of the hundred examples that Hypothesis's profile for CI has.
settings.register_profile("all-examples", settings.get_profile("ci"))
settings.register_profile("ci", settings.get_profile("ci"), max_examples=25)

# Its twenty commands take 10 ms, which every command that a test types in this process would pay.
cli.command_parser = cache(cli.command_parser)
# Reading the certificates of all authorities takes 30 ms, which every client of HTTP would do anew.
ssl.create_default_context = cache(ssl.create_default_context)

gc.disable()  # what is imported stays: a third of the time of collecting the tests went into looking for garbage in it


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        postgres.begin_run()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        postgres.end_run()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names if name in pyfuncitem.funcargs}
    run = asyncio.run if pyfuncitem.get_closest_marker("realtime") else run_virtual
    run(pyfuncitem.obj(**arguments))
    return True


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    if tracemalloc.is_tracing():
        tracemalloc.stop()
        pytest.fail(
            "the test left tracemalloc on: every later test of this process would take six times as long"
        )


@pytest.fixture(autouse=True)
def stores_of_a_test_end_with_it(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Closes every store that code of the OPENERS opened: from Python 3.13 on, a connection that is
    left to the garbage collector is a warning.

    A store that the kit opened is the kit's to close, and stays a warning.
    """
    opened: list[Database] = []
    open_database = Database.__init__

    def open_and_note(store: Database, *args: Any, **options: Any) -> None:
        open_database(store, *args, **options)
        frame = sys._getframe(1)
        while frame.f_back and frame.f_code.co_filename.startswith(STORES):
            frame = frame.f_back
        if frame.f_code.co_filename.startswith(OPENERS):
            opened.append(store)

    monkeypatch.setattr(Database, "__init__", open_and_note)
    yield
    for store in opened:
        store.close()


@pytest.fixture
def server() -> Iterator[Loopback]:
    """A model's endpoint on this machine."""
    with loopback() as server:
        yield server
