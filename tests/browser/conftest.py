"""Browser tests need playwright and a Chromium. Without them they are skipped with the reason; in
CI that is a failure."""

import os
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import chromium as found

if TYPE_CHECKING:
    from tests.browser.stage import Visitor
    from tests.streamlit_server import Served


def _wanting() -> str | None:
    if find_spec("playwright") is None:
        return "there is no playwright here (pip install -r requirements-browser.txt)"
    if found.chromium() is None:
        return "there is no chromium here (on Debian: apt-get install chromium)"
    return None


WANTING = _wanting()
if WANTING and os.environ.get("CI") == "true":
    raise pytest.UsageError(f"browser tests must run in CI, but {WANTING}")


class Wanting(pytest.Module):
    """Stands for a test module that cannot run here."""

    def collect(self) -> list[pytest.Item]:
        pytest.skip(str(WANTING), allow_module_level=True)


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    return Wanting.from_parent(parent, path=module_path) if WANTING else None


@pytest.fixture(scope="session")
def chromium() -> Generator[Any]:
    """One browser for all tests."""
    from tests.browser import stage

    with stage.browser() as launched:
        yield launched


@pytest.fixture(scope="session")
def desk(chromium: Any) -> Any:
    """Somebody at a desk, who has the app's own files after the first page."""
    from tests.browser.stage import DESK

    return chromium.new_context(viewport=DESK)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> "Generator[Served]":
    """The app, at its quickest: one for every test that does not watch a turn's own pace. Sessions keep tests apart."""
    from tests.streamlit_server import serve

    with serve(tmp_path_factory.mktemp("app"), {"KIT_PACE": "0.1"}) as app:
        yield app


@pytest.fixture
def visitor(desk: Any, served: "Served") -> "Iterator[Visitor]":
    """A page of theirs, which must not ask another host nor write errors to the console."""
    from tests.browser.stage import visit

    seen = visit(desk, served.url)
    yield seen
    seen.page.close()
    assert seen.foreign == [], "the page asked another host"
    assert seen.complaints == [], "the page wrote errors to the console"
