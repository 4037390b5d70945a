"""Reads YAML with libyaml where PyYAML was built with it; lines and faults are those of PyYAML's own scanner."""

import re
from collections.abc import Callable
from itertools import chain
from typing import Any, TypeVar

import yaml
from yaml.composer import Composer, ComposerError

UNREADABLE = (yaml.YAMLError, ValueError, AttributeError, RecursionError)
"""What PyYAML raises on text that is not YAML; it lets errors of Python's own conversions through."""
NODES = 20_000
"""Values that a text may stand for, each as often as it is named."""
_READ_DIFFERENTLY = re.compile(r"[\t\r\ufeff]|[|>][-+\d]{0,2}#")
"""Where libyaml is laxer or counts lines otherwise: a tab, a lone carriage return, `#` after `|` or
`>`. A `?` between brackets is another such place, which only who reads the text can find."""
_Node = TypeVar("_Node", yaml.SequenceNode, yaml.MappingNode)
_slow: Callable[[str], yaml.SafeLoader | yaml.CSafeLoader] = yaml.SafeLoader
_fast = _slow

if yaml.__with_libyaml__:

    class _EventLoader(Composer, yaml.CSafeLoader):
        """Composes libyaml's events in Python, where a text nested too deep is a RecursionError;
        libyaml's composer crashes."""

        def __init__(self, text: str):
            yaml.CSafeLoader.__init__(self, text)
            Composer.__init__(self)
            self._text = text

        def compose_sequence_node(self, anchor: Any) -> yaml.SequenceNode:
            return self._same(super().compose_sequence_node(anchor))

        def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
            return self._same(super().compose_mapping_node(anchor))

        def _same(self, node: _Node) -> _Node:
            """The node; raises where PyYAML's own scanner may read it differently, which takes any `?` between
            brackets for a key."""
            if node.flow_style and "?" in self._text[node.start_mark.index : node.end_mark.index]:
                raise ComposerError(None, None, "a question mark between brackets")
            return node

    _fast = _EventLoader


class _TooLarge(yaml.constructor.ConstructorError):
    """A text stands for more values than a text may hold."""


def read_yaml(text: str) -> tuple[yaml.Node | None, object]:
    """The root node of a text, with the marks of PyYAML's own scanner, and the value; (None, None)
    for an empty text.

    A text that libyaml refuses is read again by PyYAML's own scanner, whose errors name the fault.
    Raises one of UNREADABLE.
    """
    if not _READ_DIFFERENTLY.search(text):
        try:
            return _read(_fast(text))
        except _TooLarge:
            # The other scanner would need fifty times as long to say the same.
            raise
        except UNREADABLE:
            pass
    return _read(_slow(text))


def load_yaml(text: str) -> Any:
    """The value of a YAML text, as `yaml.safe_load` gives it, but sooner. Raises one of UNREADABLE."""
    return read_yaml(text)[1]


def _read(loader: yaml.SafeLoader | yaml.CSafeLoader) -> tuple[yaml.Node | None, object]:
    node = loader.get_single_node()
    if node is None:
        return None, None
    _count(node, {}, set())
    # PyYAML says nothing of the types of its own methods.
    reader: Any = loader
    return node, reader.construct_document(node)


def _count(node: Any, counts: dict[int, int], above: set[int]) -> int:
    """How many nodes a text stands for, its aliases written out; raises where that is more than a
    text may hold, or no end."""
    # An alias to a mapping around it: PyYAML makes a value that holds itself of it.
    if id(node) in above:
        raise yaml.constructor.ConstructorError(
            None, None, "a value contains itself", node.start_mark
        )
    if id(node) not in counts:
        children: list[Any] = []
        if isinstance(node, yaml.MappingNode):
            children = [*chain.from_iterable(node.value)]
        elif isinstance(node, yaml.SequenceNode):
            children = node.value
        if children:
            above = above | {id(node)}
        nodes = 1
        for child in children:
            nodes += _count(child, counts, above)
        counts[id(node)] = nodes
        if nodes > NODES:
            raise _TooLarge(None, None, f"it holds more than {NODES:,} values", node.start_mark)
    return counts[id(node)]
