"""Python code that a deck names: `package.module:NAME`, or `./file.py:NAME` beside deck.yaml; and
the tools found under it."""

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast
from zlib import crc32

from kit.core.errors import FOREIGN, CodeError, nearest
from kit.core.schema.json_value import is_mapping
from kit.tools.tool import ConfiguredTool, LimitedTool, confirm_fault, parameters
from kit.tools.tool_factory import ToolFactory

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool, StructuredTool

    from kit.tools.bounds import Objection

T = TypeVar("T")
Tools: TypeAlias = Mapping[str, "BaseTool | ConfiguredTool | LimitedTool | ToolFactory"]
"""Tool id -> the tool, or the factory that makes it when a Kit opens."""
FORMS = "`package.module:NAME`, or `./file.py:NAME` for a file beside deck.yaml"


@dataclass(frozen=True, slots=True)
class Reference:
    """Where code lies: a module of Python's path, or a file in the deck's folder; and the name in it."""

    module: str
    name: str

    @classmethod
    def parse(cls, text: str) -> "Reference":
        """Reads `package.module:NAME` or `./file.py:NAME`. Raises CodeError."""
        module, colon, name = text.rpartition(":")
        if not colon or not name.isidentifier():
            raise CodeError(f"{text!r} is no reference to code; write {FORMS}")
        if not module.endswith(".py") and not all(
            part.isidentifier() for part in module.split(".")
        ):
            raise CodeError(f"{module!r} is no module; write {FORMS}")
        return cls(module, name)

    def location(self, folder: Path) -> str:
        """Where the code is, for a person who decides whether to run it."""
        if self.module.endswith(".py"):
            return str(folder / self.module)
        return f"module {self.module}"

    def load(self, folder: Path) -> object:
        """Imports the code and returns what stands under the name. Raises CodeError, which names
        the cause and the fix."""
        try:
            if self.module.endswith(".py"):
                module = _file(folder, self.module)
            else:
                module = importlib.import_module(self.module)
        except CodeError:
            raise
        except FOREIGN as error:
            # A border: a deck's code is someone else's.
            raise CodeError(_import_fault(self.module, error)) from error
        if not hasattr(module, self.name):
            names = [name for name in vars(module) if not name.startswith("_")]
            raise CodeError(f"{self.module} has no {self.name!r}: {nearest(self.name, names)}")
        return getattr(module, self.name)


def complete_references(section: str, value: object) -> object:
    """Returns the references of a section of deck.yaml, such as `tools`: one may stand without a
    list, and a file without a name means its TOOLS. What is neither is left to validation."""
    if not isinstance(value, str | list | tuple):
        return value
    items = [value] if isinstance(value, str) else cast("Sequence[object]", value)
    references: list[object] = []
    for item in items:
        if isinstance(item, str) and item.endswith(".py"):
            references.append(f"{item}:{section.upper()}")
        else:
            references.append(item)
    return references


def is_reference(text: str) -> bool:
    """Whether a text has the form of a reference to code."""
    try:
        Reference.parse(text)
    except CodeError:
        return False
    return True


def load_reference(reference: str, folder: Path) -> object:
    """What a reference in deck.yaml stands for; `folder` is the deck's. Raises CodeError."""
    return Reference.parse(reference).load(folder)


def load_each(
    references: Sequence[str],
    folder: Path,
    noun: str,
    read: Callable[[object, str], Mapping[str, T]],
    report: Callable[[int, str], None],
) -> tuple[dict[str, T], dict[str, str]]:
    """Loads what each reference of a section of deck.yaml names, such as its tools.

    `read` makes items by id of what stands under a name. `report` gets each fault with the number
    of its reference, from 0. Returns the items, and which reference each came from.
    """
    items: dict[str, T] = {}
    sources: dict[str, str] = {}
    for number, reference in enumerate(references):
        try:
            new_items = read(load_reference(reference, folder), reference)
            for item_id in new_items:
                if item_id in sources:
                    raise CodeError(
                        f"{noun} {item_id!r} of {reference} is there already, from {sources[item_id]}; rename one"
                    )
        except CodeError as error:
            report(number, str(error))
        else:
            items |= new_items
            sources |= dict.fromkeys(new_items, reference)
    return items, sources


def named_items(value: object, reference: str) -> dict[str, Any]:
    """The items in a sequence or mapping, or one alone, by the names that they have themselves. In
    a mapping the key is the name. Raises CodeError for one without a name."""
    if is_mapping(value):
        return {str(key): item for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = cast("Iterable[Any]", value)
    else:
        items = [value]
    by_name: dict[str, Any] = {}
    for item in items:
        name = getattr(item, "name", None) or getattr(item, "__name__", None)
        if not isinstance(name, str):
            kind = type(item).__name__
            raise CodeError(f"{reference}: holds a value of type {kind}; give functions")
        if name in by_name:
            raise CodeError(f"{reference} holds two things called {name!r}; rename one")
        by_name[name] = item
    return by_name


def _file(folder: Path, name: str) -> ModuleType:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise CodeError(f"{name} lies outside the deck's folder; put it beside deck.yaml")
    if not path.is_file():
        files = [f"./{file.name}" for file in folder.glob("*.py")]
        raise CodeError(
            f"no file {name} beside deck.yaml: {nearest(name, files) if files else 'write it, or take the line out'}"
        )
    # Two decks may each have a tools.py.
    unique = f"{path.stem}_{crc32(str(path).encode()):08x}"
    spec = importlib.util.spec_from_file_location(unique, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[unique] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        # Half a module would be found by whatever unpickles a value of it.
        del sys.modules[unique]
        raise
    return module


def _import_fault(module: str, error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"{module}, line {error.lineno}: {error.msg}; correct it"
    if (
        isinstance(error, ModuleNotFoundError)
        and error.name
        and (module == error.name or module.startswith(f"{error.name}."))
    ):
        return f"no module {error.name!r}; install it, or write `./file.py:NAME` for a file beside deck.yaml"
    line = ""
    # The innermost frame in the deck's own file; below it are those of what it calls.
    for frame in traceback.extract_tb(error.__traceback__):
        if Path(frame.filename).name == Path(module).name:
            line = f" (line {frame.lineno})"
    return f"importing {module} raised {type(error).__name__}: {error}{line}"


def tools_in(value: object, source: str) -> Tools:
    """The tools in a sequence or mapping of functions, LangChain tools and tool factories; one
    alone counts as a sequence.

    A function becomes a tool with the name, docstring and type hints it has; it is not called. In a
    mapping the key is the id. Raises CodeError, naming the item, where something is neither, where
    an id comes twice, or a function has no docstring.
    """
    entries: list[tuple[str, str, object]] = []
    if is_mapping(value):
        for key, item in value.items():
            entries.append((str(key), repr(str(key)), item))
    else:
        items = cast("Iterable[object]", value) if isinstance(value, list | tuple) else [value]
        for number, item in enumerate(items, 1):
            entries.append(("", f"item {number}", item))
    tools: dict[str, BaseTool | ConfiguredTool | LimitedTool | ToolFactory] = {}
    for key, label, item in entries:
        for tool_id, tool in _tools_of(key, item, f"{source}, {label}").items():
            if tool_id in tools:
                raise CodeError(f"{source} holds two tools {tool_id!r}; rename one")
            tools[tool_id] = tool
    return tools


def _tools_of(key: str, item: object, source: str) -> Tools:
    match item:
        case ToolFactory():
            return dict.fromkeys(item.ids, item)
        case ConfiguredTool() if key:
            return {key: item}
        case LimitedTool() if not isinstance(item.tool, ToolFactory | ConfiguredTool):
            tools = cast("Mapping[str, BaseTool]", _tools_of(key, item.tool, source))
            for tool in tools.values():
                if fault := confirm_fault(item.limits, parameters(tool)):
                    raise CodeError(f"{source}: {fault}")
            return {tool_id: LimitedTool(tool, item.limits) for tool_id, tool in tools.items()}
        case _ if inspect.isroutine(item):
            tool = function_tool(key, item, source)
            return {tool.name: tool}
        case _:
            # This import takes half a second, and the shipped decks name factories only.
            from langchain_core.tools import BaseTool

            if isinstance(item, BaseTool):
                return {key or item.name: item}
            if isinstance(item, type):
                kind = f"the class {item.__name__}"
            else:
                kind = f"of type {type(item).__name__}"
            raise CodeError(
                f"{source}: is {kind}; give a function, a LangChain tool or a tool_factory"
            )


def function_tool(
    name: str,
    function: Any,
    source: str = "tools",
    *,
    impossible: "Objection | None" = None,
) -> "StructuredTool":
    """A LangChain tool over a plain function, sync or async, under `name` or its own. Raises CodeError.

    `impossible` says why a call cannot be done, of a tool that asks its user first: nobody is then
    asked for a yes to what comes to nothing, and the tool does not run.
    """
    from kit.tools.bounds import FunctionTool

    name = name or function.__name__
    if not inspect.getdoc(function):
        raise CodeError(
            f"{source}: {name}() has no docstring; say in it what the tool does, the model reads it"
        )
    field = "coroutine" if inspect.iscoroutinefunction(function) else "func"
    try:
        return FunctionTool.from_function(**{field: function}, name=name, impossible=impossible)
    except Exception as error:
        # The same border: pydantic and LangChain refuse hints in ways of their own.
        fault = str(error).splitlines()[0]
        raise CodeError(
            f"{source}: no schema can be made of {name}(): {fault}; check its type hints"
        ) from error
