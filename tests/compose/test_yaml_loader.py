"""What libyaml reads is what PyYAML reads, and a fault names its file and line."""

from typing import Any

import pytest
import yaml

from kit.compose import yaml_loader
from kit.compose.yaml_loader import read_yaml
from kit.compose.yaml_source import Faults, parse


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


def reading(text: str, loader: Any) -> tuple[Any, ...]:
    """Marks and value of a text as a loader reads it."""
    reader = loader(text)
    node = reader.get_single_node()
    value = reader.construct_document(node) if node else None
    return marks(node, {}), repr(value)


@pytest.mark.parametrize(
    "text",
    [
        "# Prices\na: &x {b: [1, 2.5, true]}\nc:\n  <<: *x\n  d: |\n    said\n    'so'\n",
        "a:\r\n  b: [x,\r\n  y]\r\n",
        "a: é\nb: {c: '?'}\n",
        "",
    ],
    ids=lambda text: repr(text[:20]),
)
def test_values_and_lines_are_those_of_pyyaml(text: str):
    node, value = read_yaml(text)
    assert (marks(node, {}), repr(value)) == reading(text, yaml.SafeLoader)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: 'open\nb: 1\n", "card.yaml:5: broken YAML: while scanning a quoted scalar"),
        ("a: b\x07c\n", "card.yaml:3: broken YAML: character U+0007 is not allowed; remove it"),
        ("a: 1\na: 2\n", "card.yaml:4: 'a' is given twice; keep one"),
        ("a: [1, 2\nb: 3\n", "card.yaml:4: broken YAML: while parsing a flow sequence"),
        ("a:\n\tb: 1\n", "card.yaml:4: broken YAML: while scanning for the next token"),
        ("a: " + "[" * 700 + "]" * 700, "card.yaml:3: broken YAML: nested too deep; flatten it"),
        ("a:\n  " + "- " * 1_200, "card.yaml:3: broken YAML: nested too deep; flatten it"),
        ("a: [x, &y [*y]]\n", "card.yaml:3: broken YAML: "),
        ("a: 2024-13-45\n", "card.yaml:3: broken YAML: a value cannot be read"),
        ("a: '\ud83d'\n", "card.yaml:3: broken YAML: "),
        ("a: !x *b\n...\n--- %\n", "card.yaml:3: broken YAML: while parsing a block mapping"),
    ],
    ids=lambda text: repr(text[:20]),
)
@pytest.mark.parametrize("scanner", ["libyaml", "PyYAML's own"])
def test_a_fault_has_its_file_and_line_with_libyaml_and_without(
    text: str, fault: str, scanner: str, monkeypatch: pytest.MonkeyPatch
):
    if scanner != "libyaml":
        monkeypatch.setattr(yaml_loader, "_Loader", yaml.SafeLoader)
    faults = Faults()
    # Two lines stand before the text in its file.
    parse(text, "card.yaml", faults, offset=2)
    assert faults[0].startswith(fault)
