"""The page that says which helper a test takes (tests/README.md) names what there is, and its example runs."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

from kit.home import HOME

PAGE = (HOME / "tests" / "README.md").read_text()


def test_the_page_of_helpers_names_files_and_names_that_there_are() -> None:
    for row in re.findall(r"^\| (?!you test|---).*$", PAGE, re.MULTILINE):
        texts: list[str] = []
        names: list[str] = []
        for quoted in re.findall(r"`([^`]+)`", row):
            path = HOME / quoted
            if path.is_file():
                texts.append(path.read_text())
            elif re.fullmatch(r"[A-Za-z_]+", quoted):
                names.append(quoted)
            else:
                assert (
                    path.is_dir() or list((HOME / "tests").rglob(quoted)) or "open_kit" in quoted
                ), quoted
        for name in names:
            assert any(re.search(rf"\b{name}\b", text) for text in texts), f"{name} in {row}"


async def test_the_example_of_the_page_of_helpers_passes() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(code, scope)
    example: Callable[[], Awaitable[None]] = scope["test_a_part_that_fails_is_owned_up_to"]
    await example()
