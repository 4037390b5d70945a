"""No text from outside can hold the loop: every regular expression of the kit takes time in
proportion to what it reads."""

import ast
import importlib
import pkgutil
import re
import time
from collections.abc import Iterator

import pytest

import kit
from kit.core.language.request_template import values_in
from tests.house.test_repository import sources

REPEATED = (
    *" \n\tx0A_-.?!\"'“([{<`*#:,/\\",
    *(
        "\r\n",
        ", ",
        "1. ",
        "a.b/",
        "Aa ",
        "- ",
        "```",
        "<a>",
        "<component ",
        '{"name":',
        "{",
        '\\"',
        "@a",
        "|a",
    ),
    *(
        "and also ",
        "not ",
        "no ",
        "left ",
        "near A ",
        "ask_a ",
        "1 ",
        "-----",
    ),
    *(
        "[picture: ",
        "No answer from a: ",
        "Candidate 1:\n",
        "draft: {",
        "could not ",
        "key=",
    ),
)
"""What an attacker would repeat: white space, quotes, brackets, the words that the patterns themselves look for."""
FRAMES = (("x", "x"), ("x ", "!"), ('no "', "\x01"))
ENDLESS = re.compile(r"[*+]|\{\d*,\}")
"""What in a pattern may repeat without end."""
SMALL = 400
LARGE = 1600
QUICK = 0.001
"""Seconds for the large size under which nobody asks further: a linear pattern needs far less."""
STEEP = 2.8
"""Doubling the length doubles the time of a linear pattern and takes a quadratic one four times as long."""


def compiled() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Every pattern that a module of the kit holds or names in a call, with its place."""
    for module in pkgutil.walk_packages(kit.__path__, "kit."):
        # The environment of the migrations runs only while Alembic migrates a file.
        if not module.name.endswith(("__main__", "migrations.env")):
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                    yield f"{module.name}.{name}", value
    for path, text in sources("kit"):
        for node in ast.walk(ast.parse(text)) if re.search(r"\bre\.", text) else ():
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="re"), attr=attribute),
                    args=[ast.Constant(str(pattern)), *_],
                ):
                    if attribute != "compile":
                        yield f"{path}:{node.lineno}", re.compile(pattern, re.I)
                case _:
                    pass


def seconds(pattern: re.Pattern[str], text: str) -> float:
    """Processor time of looking through a whole text, the quicker of two goes; one that is quick
    enough is the only one."""
    times: list[float] = []
    while len(times) < 2 and not (times and times[0] < QUICK):
        began = time.thread_time()
        for _ in pattern.finditer(text):
            pass
        times.append(time.thread_time() - began)
    return min(times)


def steep(pattern: re.Pattern[str], repeated: str, frame: tuple[str, str]) -> bool:
    """Whether the time grows faster than the text at every step from the small size to the large."""

    def cost(size: int) -> float:
        return seconds(pattern, frame[0] + repeated * (size // len(repeated)) + frame[1])

    small = cost(SMALL)
    if small > 0.02:
        return True
    # Not even time that grows as the cube of the length would then make the large size slow.
    if small < QUICK / (LARGE // SMALL) ** 3:
        return False
    return cost(LARGE) > QUICK and all(
        cost(2 * size) > STEEP * cost(size) for size in (LARGE // 4, LARGE // 2, LARGE)
    )


@pytest.mark.req("S-1")
def test_no_pattern_takes_more_than_linear_time():
    patterns = {pattern: place for place, pattern in compiled()}
    assert len(patterns) > 100
    # What repeats nothing without end looks at each place of a text for a bounded time.
    patterns = {
        pattern: place for pattern, place in patterns.items() if ENDLESS.search(pattern.pattern)
    }
    assert len(patterns) > 50
    hits = {
        place: repeated
        for pattern, place in patterns.items()
        for repeated in REPEATED
        if any(steep(pattern, repeated, frame) for frame in FRAMES)
    }
    assert hits == {}


@pytest.mark.parametrize("pattern", [r"\s+x", r"\s*(?:\s+a|\s+b)\s+c", r"left (?:\w| )*out"])
def test_a_pattern_that_is_not_linear_is_noticed(pattern: str):
    assert any(
        steep(re.compile(pattern), repeated, frame)
        # Other work beside it hides the growth now and then.
        for _ in range(4)
        for repeated in (" ", "x", "left ", "a")
        for frame in FRAMES
    )


@pytest.mark.req("S-1")
@pytest.mark.parametrize(
    ("request_text", "message"),
    [
        ("Rank the {status}[ {cuisine}] outlets[ in {city}]", "Rank the " + "A " * 8000),
        ("Name {kind}{kind}", "Name " + "a" * 16000),
    ],
)
def test_no_long_message_holds_who_plans_by_examples(request_text: str, message: str):
    began = time.thread_time()
    assert values_in(request_text, message) is None
    assert time.thread_time() - began < 0.2
