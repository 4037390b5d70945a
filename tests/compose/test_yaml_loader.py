"""Both scanners of PyYAML say the same of every text: where each value stands, what it is, and what
is wrong with it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kit.compose import yaml_loader
from kit.compose.yaml_loader import UNREADABLE, read_yaml
from kit.compose.yaml_source import Faults, parse

CARDS = Path(__file__).parents[2] / "cards"
SHIPPED = {
    path.relative_to(CARDS).as_posix(): path.read_text() for path in sorted(CARDS.rglob("*.yaml"))
}
SHORT = [text for text in SHIPPED.values() if len(text) < 1500]
STRUCTURE = [
    " ",
    "\n",
    ":",
    "- ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "|\n",
    ">\n",
    ">#",
    "?",
    "---\n",
    "...\n",
]
NAMES = ["&a ", "*a", "!x ", "<<: ", "~", "=", "0x", "%", "@", "`", "#", "\\"]
ODD = [
    '"',
    "'",
    "\t",
    "\r",
    "\r\n",
    "\x85",
    "\u2028",
    "\ufeff",
    "\x07",
    "\U0001f600",
    "\ud83d",
    "é",
]
DAMAGE = st.tuples(
    st.floats(0, 1), st.sampled_from(["", *STRUCTURE, *NAMES, *ODD]), st.integers(0, 6)
)
"""Where in a text, what is put there, and how many characters go."""


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch):
    """`slow()` leaves PyYAML's own scanner alone."""
    return lambda: monkeypatch.setattr(yaml_loader, "_fast", yaml.SafeLoader)


def marks(node: yaml.Node | None, found: dict[int, Any]) -> list[Any]:
    """Tag, line and text of every node under this one; of one met before, which it was."""
    if node is None or id(node) in found:
        return [found.get(id(node))]
    found[id(node)] = len(found)
    here: list[Any] = [
        (node.tag, node.start_mark.line, node.value if isinstance(node, yaml.ScalarNode) else None)
    ]
    parts = [] if isinstance(node, yaml.ScalarNode) else node.value
    for part in parts:
        for one in part if isinstance(part, tuple) else (part,):
            here += marks(one, found)
    return here


def reading(text: str, loader: Any = None) -> tuple[Any, ...]:
    """Marks and value of a text, or its fault: as the kit reads it, or as a loader does."""
    try:
        if loader is None:
            node, value = read_yaml(text)
        else:
            reader = loader(text)
            node = reader.get_single_node()
            value = reader.construct_document(node) if node else None
        return marks(node, {}), repr(value)
    except UNREADABLE as error:
        return type(error), str(error)


def test_libyaml_is_there_and_used():
    assert yaml.__with_libyaml__
    assert yaml_loader._fast is not yaml.SafeLoader


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.sampled_from(SHORT), st.lists(DAMAGE, max_size=3))
@example("a: [1, 2\nb: 3\n", [])
@example("a: " + "[" * 700 + "]" * 700, [])
@example("a:\n  " + "- " * 1_200, [])
@example("a: >" + ">" * 1_200, [])
@example("a:\n  b: [x,\n  y?]\n", [])
@example("", [])
@example("a: 2024-13-45\n", [])
def test_a_text_that_was_damaged_is_read_the_same(text: str, damage: list[tuple[float, str, int]]):
    for place, mark, length in damage:
        at = round(place * len(text))
        text = text[:at] + mark + text[at + length :]
    assert reading(text) == reading(text, yaml.SafeLoader)


@pytest.mark.parametrize(
    "text",
    ["a: 'open\nb: 1\n", "a: b\x07c\n", "a: 1\na: 2\n"],
)
def test_a_fault_is_worded_the_same_without_libyaml(text: str, slow: Any):
    quick, plain = Faults(), Faults()
    parse(text, "card.yaml", quick, offset=2)
    slow()
    parse(text, "card.yaml", plain, offset=2)
    assert quick == plain != []
