"""Parses YAML into pydantic values and reports each fault as `file:line: sentence with the fix`."""

import re
import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kit.compose.yaml_loader import UNREADABLE, read_yaml
from kit.core.errors import nearest
from kit.core.schema.json_value import is_object

M = TypeVar("M", bound=BaseModel)
LONGEST = 2_000_000
"""Bytes of a file that a deck or a grid is read from."""
_FILE_AND_LINE = re.compile(r"\A(.*?):(\d+): ")


@dataclass(frozen=True)
class Source:
    """One parsed text: its value, and where each part of it stands."""

    file: str
    value: dict[str, Any]
    node: yaml.Node | None
    offset: int = 0

    def at(self, *path: str | int) -> str:
        """`file:line` of the value under `path`, or of the deepest part of the path that is there."""
        line = self._along(*path)[-1].start_mark.line if self.node else 0
        return f"{self.file}:{line + 1 + self.offset}"

    def holds(self, *path: str | int) -> bool:
        """Whether a value stands under `path`."""
        return len(self._along(*path)) == len(path) + 1

    def _along(self, *path: str | int) -> list[yaml.Node]:
        """The nodes met on the way, as far as it leads."""
        nodes: list[yaml.Node] = []
        node = self.node
        steps = iter(path)
        while node is not None:
            nodes.append(node)
            step = next(steps, None)
            node = None if step is None else _child(node, step)
        return nodes


class Faults(list[str]):
    """Faults found so far, each `place: sentence`."""

    def add(self, place: str, sentence: str) -> None:
        self.append(f"{place}: {sentence}")

    def in_order(self) -> list[str]:
        """File by file, line by line."""
        return sorted(self, key=_file_and_line)


def _file_and_line(fault: str) -> tuple[str, int]:
    match = _FILE_AND_LINE.match(fault)
    if match:
        return (match[1], int(match[2]))
    return (place_and_words(fault)[0], 0)


def place_and_words(fault: str) -> tuple[str, str]:
    """Returns where a fault is, as a file and a line or a part of the deck, and what is said of it, with its fix."""
    place, _, words = fault.partition(": ")
    return place, words


def read_text(path: Path, faults: Faults) -> str | None:
    """The text of a file; None with a fault when it cannot be read."""
    try:
        if path.exists() and not (path.is_file() and path.stat().st_size <= LONGEST):
            faults.add(f"{path}:1", f"is no file of at most {LONGEST:,} bytes; name one that is")
            return None
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        faults.add(f"{path}:1", "not UTF-8 text; save it as UTF-8")
    except OSError as error:
        reason = error.strerror or error
        faults.add(f"{path}:1", f"cannot be read ({reason}); check that it is a file you may read")
    return None


def parse_file(path: Path, faults: Faults) -> Source | None:
    """Reads and parses a YAML file; None with a fault when it cannot be read or is something else."""
    text = read_text(path, faults)
    if text is not None:
        return parse(text, str(path), faults)
    return None


def parse(text: str, file: str, faults: Faults, offset: int = 0) -> Source | None:
    """Parses YAML whose top level is a mapping; None with a fault when it is something else.

    `offset`: lines that stand before the text in its file. An empty text is an empty mapping.
    """
    try:
        node, value = read_yaml(text)
    except UNREADABLE as error:
        line, problem = _problem(error, text)
        faults.add(f"{file}:{line + offset}", f"broken YAML: {problem}")
        return None
    source = Source(file, value if is_object(value) else {}, node, offset)
    if node and _mapping_in(source, value, faults) is None:
        return None
    for key in _repeated(node):
        line = key.start_mark.line + 1 + offset
        faults.add(f"{file}:{line}", f"{key.value!r} is given twice; keep one")
    return source


def _mapping_in(
    source: Source, value: object, faults: Faults, *path: str | int
) -> dict[str, Any] | None:
    if is_object(value):
        return value
    kinds: dict[type, str] = {type(None): "nothing", str: "text", list: "a list"}
    kind = kinds.get(type(value), "a single value")
    sentence = f"expected a mapping of fields, found {kind}; write `field: value` lines"
    faults.add(source.at(*path), sentence)
    return None


def build(
    model: type[M],
    source: Source,
    faults: Faults,
    *path: str | int,
    extra: dict[str, Any] | None = None,
) -> M | None:
    """A value of `model` from what stands under `path`, with `extra` fields set; None with every
    fault when it does not fit."""
    value: Any = source.value
    for step in path:
        value = value[step]
    fields = _mapping_in(source, value, faults, *path)
    if fields is None:
        return None
    try:
        return model.model_validate({**fields, **(extra or {})})
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_context=False):
            # What pydantic says of a key, and not of a value, has no line of its own.
            field_path = [step for step in detail["loc"] if step != "[key]"]
            faults.add(source.at(*path, *field_path), _sentence(model, detail))
        return None


def _sentence(model: type[BaseModel], detail: ErrorDetails) -> str:
    loc = detail["loc"]
    message = detail["msg"]
    value = detail["input"]
    name = ".".join(map(str, loc))
    match detail["type"]:
        case "extra_forbidden":
            return f"unknown field {name!r}: {nearest(str(loc[-1]), _fields(model, loc[:-1]))}"
        case "missing":
            return f"field {name!r} is missing; add it"
        # YAML reads an unquoted 1.0, yes or 2026-01-01 as something else than a text.
        case "string_type" if isinstance(value, (bool, int, float, date)):
            return f"{name!r} must be a string, got {value!r}; put it in quotes"
        case "tuple_type":
            return f"{name!r} must be a list, such as [first, second], got {reprlib.repr(value)}"
        case "value_error":
            text = message.removeprefix("Value error, ")
            return f"{name!r}: {text}" if name else text
        case "recursion_loop":
            return f"{name!r} contains itself; remove the alias"
        case _:
            excerpt = reprlib.repr(value)
            return f"{name!r}: {message[:1].lower()}{message[1:]}, got {excerpt}"


def _fields(model: type[BaseModel], loc: Sequence[str | int]) -> list[str]:
    """The field names a model knows under `loc`."""
    kind: Any = model
    for step in loc:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            kind = kind.model_fields[str(step)].annotation
        else:
            # Of a mapping or a tuple the type of its values comes last.
            kind = next(iter(get_args(kind)[-1:]), None)
        if get_origin(kind) in (Union, UnionType):
            kind = next((arg for arg in get_args(kind) if arg is not type(None)), None)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return list(kind.model_fields)
    return []


def _problem(error: Exception, text: str) -> tuple[int, str]:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        words = ", ".join(part for part in (error.context, error.problem) if part)
        return (
            mark.line + 1 if mark else 1
        ), f"{words}; check quotes, colons, tabs and indentation"
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return line, f"character U+{error.character:04X} is not allowed; remove it"
    if isinstance(error, RecursionError):
        return 1, "nested too deep; flatten it"
    return 1, f"a value cannot be read ({error}); put it in quotes"


def _child(node: yaml.Node | None, step: str | int) -> yaml.Node | None:
    match node:
        case yaml.MappingNode():
            for key, value in node.value:
                if key.value == str(step):
                    return value
            return None
        case yaml.SequenceNode() if isinstance(step, int) and step < len(node.value):
            return node.value[step]
        case _:
            return None


def _repeated(root: yaml.Node | None) -> Iterator[yaml.Node]:
    """Keys that stand a second time in one mapping; PyYAML would silently keep the last."""
    visited: set[int] = set()
    todo = [] if root is None else [root]
    while todo:
        node = todo.pop()
        # An alias leads to the same node again.
        if id(node) in visited:
            continue
        visited.add(id(node))
        if isinstance(node, yaml.MappingNode):
            keys: set[str] = set()
            for key, value in node.value:
                todo.append(value)
                if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                    if key.value in keys:
                        yield key
                    keys.add(key.value)
        elif isinstance(node, yaml.SequenceNode):
            todo += node.value
