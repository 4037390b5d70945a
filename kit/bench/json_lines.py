"""Reads files of JSON lines; every fault is a DataError that names the file, and the line where there is one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from kit.core.errors import DataError
from kit.core.limits import read_json
from kit.core.value import Value

V = TypeVar("V", bound=Value)


def read_text(path: Path, noun: str = "") -> str:
    """The text of a file. Raises DataError where it cannot be read; `noun` says of what, such as "the cases of "."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"cannot read {noun}{path}: it is not UTF-8") from error
    except OSError as error:
        raise DataError(f"cannot read {noun}{path}: {error.strerror}") from error


def _numbered(text: str, path: Path) -> Iterator[tuple[str, str]]:
    """The lines that hold something, each with its place, `path:number`."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield f"{path}:{number}", line


def read_objects(path: Path, noun: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a file that has one a line, each with its place. Raises DataError for another line;
    `noun` says what a line should hold, such as "case"."""
    # A mark at the beginning of the file is what spreadsheets write.
    text = read_text(path, f"the {noun}s of ").removeprefix("\ufeff")
    for where, line in _numbered(text, path):
        try:
            value: object = read_json(line)
        except ValueError as error:
            raise DataError(
                f"{where}: not JSON ({error}); a {noun} is one object a line"
            ) from error
        if not isinstance(value, dict):
            raise DataError(f"{where}: not a {noun}; a {noun} is one object a line")
        yield where, cast("dict[str, Any]", value)


def validate_lines(model: type[V], path: Path, noun: str) -> Iterator[tuple[str, V]]:
    """The values of a file, each with its place. Raises DataError for a line that is not `noun`,
    with the field at fault."""
    for where, line in _numbered(read_text(path), path):
        try:
            value = model.model_validate_json(line)
        except ValidationError as error:
            raise DataError(f"{where}: not {noun}; {first_fault(error)}") from error
        yield where, value


def first_fault(error: ValidationError) -> str:
    """The first field at fault, and why, in a few words."""
    fault = error.errors()[0]
    field = ".".join(map(str, fault["loc"])) or "the line"
    return f"{field}: {fault['msg'].lower()}"
