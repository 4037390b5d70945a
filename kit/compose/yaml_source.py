"""Parses YAML into pydantic values and reports each fault as `file:line: sentence with the fix`."""

import re
import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from kit.compose.yaml_loader import UNREADABLE, read_yaml
from kit.core.errors import nearest

M = TypeVar("M", bound=BaseModel)
LONGEST = 2_000_000
"""Bytes of a file that a deck or a grid is read from."""
_PLACE = re.compile(r"\A(.*?):(\d+): ")


@dataclass(frozen=True)
class Source:
    """One parsed text: its value, and where each part of it stands."""

    file: str
    value: dict[str, Any]
    node: yaml.Node | None
    offset: int = 0

    def at(self, *path: str | int) -> str:
        """`file:line` of the value under `path`, or of the deepest part of the path that is there."""
        if self.node:
            line = self._along(*path)[-1].start_mark.line + 1
        else:
            line = 1
        return f"{self.file}:{line + self.offset}"

    def holds(self, *path: str | int) -> bool:
        """Whether a value stands under `path`."""
        return len(self._along(*path)) == len(path) + 1

    def _along(self, *path: str | int) -> list[yaml.Node]:
        """The nodes met on the way, as far as it leads."""
        nodes: list[yaml.Node] = []
        node = self.node
        for step in (None, *path):
            if step is not None:
                node = _child(node, step)
            if node is None:
                break
            nodes.append(node)
        return nodes


class Faults(list[str]):
    """Faults found so far, each `place: sentence`."""

    def add(self, place: str, sentence: str) -> None:
        self.append(f"{place}: {sentence}")

    def in_order(self) -> list[str]:
        """File by file, line by line."""
        return sorted(self, key=_place)


def _place(fault: str) -> tuple[str, int]:
    match = _PLACE.match(fault)
    if match:
        return (match[1], int(match[2]))
    return (fault.partition(": ")[0], 0)


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
        faults.add(
            f"{path}:1",
            f"cannot be read ({error.strerror or error}); check that it is a file you may read",
        )
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
    source = Source(file, cast("dict[str, Any]", value) if node else {}, node, offset)
    if node and not isinstance(value, dict):
        faults.add(
            source.at(),
            f"expected a mapping of fields, found {_kind(value)}; write `field: value` lines",
        )
        return None
    for again in _repeated(node):
        name = again.value
        faults.add(
            f"{file}:{again.start_mark.line + 1 + offset}", f"{name!r} is given twice; keep one"
        )
    return source


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
    if not isinstance(value, dict):
        faults.add(
            source.at(*path),
            f"expected a mapping of fields, found {_kind(value)}; write `field: value` lines",
        )
        return None
    fields = cast("dict[str, Any]", value)
    try:
        return model.model_validate({**fields, **(extra or {})})
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_context=False):
            loc = detail["loc"]
            field_path: list[int | str] = []
            for step in loc:
                if step != "[key]":
                    field_path.append(step)
            faults.add(
                source.at(*path, *field_path),
                _sentence(model, detail["type"], loc, detail["msg"], detail["input"]),
            )
        return None


def _sentence(
    model: type[BaseModel], kind: str, loc: Sequence[str | int], message: str, value: Any
) -> str:
    name = ".".join(str(step) for step in loc)
    match kind:
        case "extra_forbidden":
            return f"unknown field {name!r}: {nearest(str(loc[-1]), _fields(model, loc[:-1]))}"
        case "missing":
            return f"field {name!r} is missing; add it"
        case "string_type" if isinstance(value, (bool, int, float, date)):
            return f"{name!r} must be a string, got {value!r}; put it in quotes"
        case "value_error":
            text = message.removeprefix("Value error, ")
            if name:
                return f"{name!r}: {text}"
            return text
        case "recursion_loop":
            return f"{name!r} contains itself; remove the alias"
        case _:
            excerpt = reprlib.repr(value)
            return f"{name!r}: {message[:1].lower()}{message[1:]}, got {excerpt}"


def _fields(model: type[BaseModel], loc: Sequence[str | int]) -> list[str]:
    """The field names a model knows under `loc`."""
    here: Any = model
    for step in loc:
        if isinstance(here, type) and issubclass(here, BaseModel):
            here = here.model_fields[str(step)].annotation
        else:
            here = next(iter(get_args(here)[-1:]), None)
        if get_origin(here) in (Union, UnionType):
            here = next((arg for arg in get_args(here) if arg is not type(None)), None)
    if isinstance(here, type) and issubclass(here, BaseModel):
        return list(here.model_fields)
    return []


def _problem(error: Exception, text: str) -> tuple[int, str]:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        words = ", ".join(part for part in (error.context, error.problem) if part)
        return (mark.line + 1 if mark else 1), f"{words}; check quotes, colons and indentation"
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
    if root is not None:
        todo = [root]
    else:
        todo = []
    while todo:
        node = todo.pop()
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


def _kind(value: object) -> str:
    kinds: dict[type, str] = {type(None): "nothing", str: "text", list: "a list"}
    return kinds.get(type(value), "a single value")
