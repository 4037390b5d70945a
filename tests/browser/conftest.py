"""Browser tests need playwright and a Chromium. Without them they are skipped with the reason; in CI that is a failure."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.browser.chromium import chromium


def _wanting() -> str | None:
    if find_spec("playwright") is None:
        return "there is no playwright here (pip install -r requirements-browser.txt)"
    if chromium() is None:
        return "there is no chromium here (on Debian: apt-get install chromium)"
    return None


WANTING = _wanting()
if WANTING and os.environ.get("CI") == "true":
    raise pytest.UsageError(f"browser tests must run in CI, but {WANTING}")


class Wanting(pytest.Module):
    """Stands for a test module that cannot run here."""

    def collect(self) -> list[pytest.Item]:
        pytest.skip(str(WANTING), allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return Wanting.from_parent(parent, path=module_path) if WANTING else None
