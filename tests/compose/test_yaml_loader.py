"""Both scanners of PyYAML say the same of every text: where each value stands, what it is, and what
is wrong with it."""

from typing import Any

import pytest
import yaml

from kit.compose import yaml_loader
from kit.compose.yaml_loader import UNREADABLE, read_yaml
from kit.compose.yaml_source import Faults, parse


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


@pytest.mark.parametrize(
    "text",
    [
        "# Prices\na: &x {b: [1, 2.5, true]}\nc:\n  <<: *x\n  d: |\n    said\n    'so'\n",
        "a: [1, 2\nb: 3\n",
        "a: " + "[" * 700 + "]" * 700,
        "a:\n  " + "- " * 1_200,
        "a: >" + ">" * 1_200,
        "a:\n  b: [x,\n  y?]\n",
        "",
        "a: 2024-13-45\n",
        "a: '\ud83d'\nb: \x85\u2028\ufeff\n",
        "a: !x *b\n...\n--- %\n",
    ],
    ids=lambda text: repr(text[:20]),
)
def test_a_sound_and_a_damaged_text_is_read_the_same(text: str):
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
