"""What tells code and model objects apart, in the same words in every process: a grid in Python
keys its cells by it."""

import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, cast

from langchain_core.tools import BaseTool
from pydantic import BaseModel, SecretStr

from kit.core.errors import DataError
from kit.core.value import Value
from kit.tools.tool import ConfiguredTool, LimitedTool
from kit.tools.tool_factory import ToolFactory


class UnstableError(Exception):
    """A value that cannot be told from another of its type; its text names the type."""


def digest(*parts: object) -> str:
    """A short name for values: equal for equal ones, on every machine."""
    values = [part.model_dump(mode="json") if isinstance(part, Value) else part for part in parts]
    text = json.dumps(values, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def code_identity(function: Callable[..., Any]) -> list[Any]:
    """The source of a function, of those of its own module that it uses, and the plain values it sees there.

    Of anything else it uses only the name counts. Raises DataError for code without a source.
    """
    return list(_code(function, set()))


def model_identity(key: str, model: BaseModel, *, named: bool) -> dict[str, Any]:
    """The class of a chat model and its parameters that are not at their defaults, secrets and
    clients aside.

    A parameter that is no plain value is left out of a model that its caller `named`. Raises
    DataError for one that is not named.
    """
    values: dict[str, object] = {}
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        # What a later version of its package adds at a default changes nothing.
        if name != "name" and not field.exclude and value is not None and value != field.default:
            values[name] = value
    return {"class": _name(type(model)), **stable(f"model {key!r}", "models", values, named=named)}


def stable(
    owner: str, argument: str, values: Mapping[str, object], *, named: bool
) -> dict[str, Any]:
    """The plain values of what its caller gave by this argument. Raises DataError where it is not
    `named` and holds something that no other run could know again, such as a client."""
    state: dict[str, Any] = {}
    for name, value in values.items():
        try:
            state[name] = plain(value)
        except UnstableError as error:
            if not named:
                raise DataError(
                    f"{owner} holds a value of type {error} in {name!r}, so that no other run can "
                    f"know it again: give it a name, {argument}={{'mine': ...}}, and another name "
                    f"whenever it changes"
                ) from None
    return state


def tool_identity(tool: BaseTool | ConfiguredTool | LimitedTool | ToolFactory) -> list[Any]:
    """The code of a tool, and what a model reads of it. Raises DataError for code without a source."""
    match tool:
        case ToolFactory():
            return code_identity(tool.open)
        case ConfiguredTool():
            return code_identity(tool.make)
        case LimitedTool():
            inner = tool.tool
            identity = tool_identity if isinstance(inner, BaseTool) else code_identity
            return [plain_or_name(tool.limits), *identity(cast(Any, inner))]
        case _:
            code = getattr(tool, "coroutine", None) or getattr(tool, "func", None) or type(tool)
            return [tool.name, tool.description, tool.args, *code_identity(code)]


def plain(value: object) -> Any:
    """The value as JSON has it, secrets left out. Raises UnstableError where it holds an object
    that says nothing of itself."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case SecretStr():
            return "secret"
        case Enum() | Path() | type():
            return str(value)
        case Mapping():
            entries = cast("Mapping[object, object]", value)
            return {str(key): plain(entry) for key, entry in entries.items()}
        case list() | tuple():
            return list(map(plain, cast("Sequence[object]", value)))
        case set() | frozenset():
            return sorted(map(str, map(plain, cast("set[object]", value))))
        case BaseModel():
            shown = type(value).model_fields.items()
            return _object(value, [name for name, field in shown if not field.exclude])
        case _ if is_dataclass(value):
            return _object(value, [field.name for field in fields(value)])
        case _:
            raise UnstableError(_name(type(value)))


def _object(value: object, names: Iterable[str]) -> dict[str, Any]:
    described = {"class": _name(type(value))}
    for name in names:
        described[name] = plain(getattr(value, name))
    return described


def _code(function: Callable[..., Any], visited: set[object]) -> Iterator[Any]:
    function = inspect.unwrap(function)
    visited.add(function)
    code = getattr(function, "__code__", None)
    try:
        # From Python 3.13 on, `python -c` keeps its own text as the source of the file "<string>",
        # and every eval() and exec() says it is of that file: any of them would have that text.
        if code is not None and code.co_filename == "<string>":
            raise OSError
        yield inspect.getsource(function)
    except (OSError, TypeError):
        name = getattr(function, "__name__", repr(function))
        raise DataError(
            f"the code of {name!r} cannot be read: write it as a function in a file or in a notebook's cell"
        ) from None
    if not inspect.isfunction(function):
        return
    yield plain_or_name((function.__defaults__, function.__kwdefaults__))
    uses = inspect.getclosurevars(function)
    for name, value in sorted({**uses.globals, **uses.nonlocals}.items()):
        if inspect.isfunction(value) and value.__module__ == function.__module__:
            if value not in visited:
                yield from _code(value, visited)
        else:
            yield [name, plain_or_name(value)]


def plain_or_name(value: object) -> Any:
    """The plain value, else the name of the thing or of its class."""
    try:
        return plain(value)
    except UnstableError:
        if hasattr(value, "__qualname__"):
            return _name(value)
        return _name(type(value))


def _name(named_object: Any) -> str:
    return f"{getattr(named_object, '__module__', '')}.{named_object.__qualname__}"
