"""Where a system comes from, and what tells it from what it was before an edit."""

import hashlib
import shlex
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from modulefinder import ModuleFinder
from pathlib import Path
from typing import Any, cast

from kit.bench.identity import code_identity, digest, plain_or_name
from kit.bench.systems.command import command_bridge
from kit.bridges.http import is_address
from kit.bridges.part import Bridge
from kit.bridges.recognise import bridge_of, load_bridge
from kit.core.errors import CodeError, DataError, nearest
from kit.tools.loading import Reference, load_reference

COMMAND = "command:"
"""What a command begins with."""
_TEXTS = (".md", ".txt", ".yaml", ".yml", ".toml", ".jinja", ".jinja2", ".j2", ".prompt")
"""Files beside a system that it may read its prompts and settings from."""


@dataclass(frozen=True)
class SystemSource:
    """One system of a grid, found and not yet loaded. It crosses to other processes, unless it is an object."""

    name: str
    value: object
    """A reference to code, an address, a command, or the thing itself."""
    folder: Path
    """What a relative path starts from."""

    @property
    def words(self) -> str:
        """What it is, as a person reads it; of an object the name of its function, or of its class."""
        return str(plain_or_name(self.value))

    @cached_property
    def file(self) -> Path | None:
        """The file of Python that a reference names; None for all else."""
        if not isinstance(self.value, str) or _is_elsewhere(self.value):
            return None
        return file_of(self.value, self.folder)

    @cached_property
    def modules(self) -> Mapping[str, Path]:
        """The modules beside that file which it imports, by name, those they import among them."""
        if self.file is None:
            return {}
        return _imports(self.file)

    def bridge(self) -> Bridge:
        """Loads the system. Raises CodeError or DataError, which say what can stand there."""
        if not isinstance(self.value, str):
            return bridge_of(self.value, self.name)
        if self.value.startswith(COMMAND):
            return command_bridge(_words_of(self.value), self.folder)
        if is_address(self.value):
            return load_bridge(self.value, self.folder)
        return bridge_of(load_code(self.value, self.folder), self.value)

    @cached_property
    def identity(self) -> str:
        """A digest of what the system is, as far as its files say: that of a service is its address."""
        parts: list[Any] = [self.value]
        if not isinstance(self.value, str):
            parts = _object_identity(self.name, self.value)
        elif self.value.startswith(COMMAND):
            for word in _words_of(self.value):
                path = self.folder / word
                parts += _contents(_sources(path) if path.suffix == ".py" else [path])
        elif self.file is not None:
            parts += _contents(_sources(self.file))
        elif not is_address(self.value):
            parts += _contents(_package_files(Reference.parse(self.value).module))
        return digest(parts)


def code_digest(references: Iterable[str], folder: Path) -> str:
    """A digest of the files that hold some code, of a module those of its package; empty for none.

    What comes with the kit has no part in it.
    """
    files: set[Path] = set()
    for reference in references:
        module = Reference.parse(reference).module
        file = file_of(reference, folder)
        if file is not None:
            files.add(file)
        elif module.partition(".")[0] != "kit":
            files.update(_package_files(module))
    if not files:
        return ""
    return digest(_contents(files))


def check_apart(sources: Iterable[SystemSource]) -> None:
    """Raises DataError where two systems of one process would import another file under one name."""
    homes: dict[str, tuple[Path, str]] = {}
    for source in sources:
        for module, path in source.modules.items():
            first, owner = homes.setdefault(module, (path, source.name))
            if first != path:
                raise DataError(
                    f"systems {owner!r} and {source.name!r} both import a module {module!r}, each of "
                    f"its own folder, and one process has room for one: rename one, or run one as a "
                    f"command of its own"
                )


def read_source(name: str, value: str, folder: Path) -> SystemSource:
    """A system as the command line names it. Raises CodeError or DataError for what is no system."""
    if value.startswith(COMMAND) and not _words_of(value):
        raise DataError(f"{value!r} names no program; write '{COMMAND}PROGRAM ARGUMENTS'")
    if not _is_elsewhere(value):
        reach(value, folder)
    return SystemSource(name, value, folder)


def _is_elsewhere(value: str) -> bool:
    """Whether a text names a program or a service, and no code that is imported here."""
    return value.startswith(COMMAND) or is_address(value)


def _words_of(value: str) -> list[str]:
    """A program and its arguments; no shell has a part in them."""
    return shlex.split(value.removeprefix(COMMAND))


def load_code(reference: str, folder: Path) -> object:
    """What stands under a name in a file, wherever it lies, or in a module. Raises CodeError or DataError."""
    file = reach(reference, folder)
    if file is None:
        return load_reference(reference, folder)
    name = reference.rpartition(":")[2]
    return load_reference(f"./{file.name}:{name}", file.parent)


def reach(reference: str, folder: Path) -> Path | None:
    """Puts the folder of code on Python's path and returns its file, as `file_of` does."""
    file = file_of(reference, folder)
    # Code imports what lies beside it, and may do so as late as when it is first called.
    home = str(folder.resolve() if file is None else file.parent)
    if home not in sys.path:
        sys.path.insert(0, home)
    return file


def file_of(reference: str, folder: Path) -> Path | None:
    """The file of Python that a reference names; None where it names a module. Raises DataError."""
    try:
        module = Reference.parse(reference).module
    except CodeError:
        raise DataError(
            f"{reference!r} names nothing that can be asked; write ./FILE.py:NAME, "
            f"PACKAGE.MODULE:NAME, https://..., or '{COMMAND}PROGRAM ARGUMENTS'"
        ) from None
    if not module.endswith(".py"):
        return None
    file = (folder / module).resolve()
    if not file.is_file():
        near = [path.name for path in file.parent.glob("*.py")]
        raise DataError(f"{reference}: no file {file}: {nearest(file.name, near)}")
    return file


def _sources(file: Path) -> list[Path]:
    """A file of Python, what it imports from its folder, and the texts beside it; none where there is no such file."""
    if not file.is_file():
        return []
    texts = [path for path in file.parent.iterdir() if path.suffix in _TEXTS]
    return [file, *_imports(file).values(), *texts]


def _imports(file: Path) -> dict[str, Path]:
    """The modules beside a file of Python which it imports, by name, those they import among them."""
    # Which attributes a module has is not in the stubs.
    finder: Any = ModuleFinder([str(file.parent)])
    # Who runs a file that is no Python of this version is told so by its interpreter.
    with suppress(SyntaxError):
        finder.run_script(str(file))
    modules: dict[str, Path] = {}
    for name, module in finder.modules.items():
        if name != "__main__" and module.__file__:
            modules[name] = Path(module.__file__)
    return modules


def _contents(paths: Iterable[Path]) -> list[tuple[str, str]]:
    """The files among these, each by its name and a digest of what it holds."""
    contents: list[tuple[str, str]] = []
    for path in set(paths):
        if path.is_file():
            contents.append((path.name, hashlib.sha256(path.read_bytes()).hexdigest()))
    return sorted(contents)


def _package_files(module: str) -> list[Path]:
    """The Python files of the package that a module is of."""
    spec = find_spec(module.partition(".")[0])
    if spec is None or spec.origin is None:
        return []
    origin = Path(spec.origin)
    if origin.name == "__init__.py":
        return list(origin.parent.rglob("*.py"))
    return [origin]


def _object_identity(name: str, value: object) -> list[Any]:
    """The source of a function; of an agent or a graph its class and the name that its caller gave
    it, for nothing in it tells one from what it was before."""
    if callable(value) and hasattr(value, "__code__"):
        return code_identity(cast("Any", value))
    return [name, plain_or_name(type(value))]
