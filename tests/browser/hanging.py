"""A turn of which a part hangs, asked on the page, and what is stored of it."""

from collections.abc import Generator
from contextlib import contextmanager

from kit.core.record import TurnRecord
from kit.stores.sqlite import SqliteStore
from tests.browser.stage import Visitor
from tests.kits import MIXED
from tests.streamlit_server import Served

HANGS = "?fault=rewards%3Dhang"


@contextmanager
def stored(served: Served) -> Generator[SqliteStore]:
    store = SqliteStore(served.store)
    try:
        yield store
    finally:
        store.close()


def turns_of(served: Served, visitor: Visitor) -> list[TurnRecord]:
    with stored(served) as store:
        return store.turns(session_id=visitor.session())


def hanging(visitor: Visitor) -> None:
    """Asks, and waits until the part that hangs is at work; the others are done at once."""
    visitor.ask(MIXED)
    visitor.page.get_by_role("button", name="Stop").wait_for()
    visitor.page.locator("details summary", has_text="Rewards").last.wait_for()
