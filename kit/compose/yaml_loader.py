"""Reads YAML with libyaml, or with PyYAML's own scanner where PyYAML was built without it."""

from itertools import chain
from typing import Any

import yaml
from yaml.composer import Composer

UNREADABLE = (yaml.YAMLError, ValueError, AttributeError, RecursionError)
"""What PyYAML raises on text that is not YAML; it lets errors of Python's own conversions through."""
NODES = 20_000
"""Values that a text may stand for, each as often as it is named."""
_Loader: type[yaml.SafeLoader | yaml.CSafeLoader] = yaml.SafeLoader

if yaml.__with_libyaml__:

    class _EventLoader(Composer, yaml.CSafeLoader):
        """Composes libyaml's events in Python, where a text nested too deep is a RecursionError;
        libyaml's composer crashes."""

        def __init__(self, text: str):
            yaml.CSafeLoader.__init__(self, text)
            Composer.__init__(self)

    _Loader = _EventLoader


def read_yaml(text: str) -> tuple[yaml.Node | None, object]:
    """The root node of a text, with the line of each part, and the value; (None, None) for an empty text.

    Raises one of UNREADABLE.
    """
    loader = _Loader(text)
    node = loader.get_single_node()
    if node is None:
        return None, None
    _count(node, {}, set())
    # PyYAML says nothing of the types of its own methods.
    reader: Any = loader
    return node, reader.construct_document(node)


def load_yaml(text: str) -> Any:
    """The value of a YAML text, as `yaml.safe_load` gives it, but sooner. Raises one of UNREADABLE."""
    return read_yaml(text)[1]


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
            raise yaml.constructor.ConstructorError(
                None, None, f"it holds more than {NODES:,} values", node.start_mark
            )
    return counts[id(node)]
