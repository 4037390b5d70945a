"""Cases as tables: CSV, JSON lines and Parquet, a row for each case.

Columns: `message`, and where known `expected_text`, `expected_agents` (parted by |), `cluster`, `id`.
Other columns are left alone, unless their names are nearly one of these.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from kit.bench.case import ANYBODY, Ask, Case, Kind, check_cases, kind_of, make_case, read_cases
from kit.bench.json_lines import read_objects, read_text
from kit.core.errors import DataError, nearest, slip_in

COLUMNS = ("message", "expected_text", "expected_agents", "cluster", "id")
_TABLES = (".csv", ".jsonl", ".parquet")
_LIKE_A_COLUMN = 0.75
"""How alike a name has to be to one of COLUMNS to be taken for a slip of the pen."""
Row = Mapping[str, Any]
GivenCases = str | Path | Iterable[Case | Row]
"""A file of cases, or cases as they would stand in one."""


def read_case_file(path: Path, agents: Sequence[str] | None = None) -> Iterator[Case]:
    """Cases of any file that this kit reads: JSON lines with `turns` or `user`, or a table.

    `agents` are those there are; None takes any. Raises DataError, one sentence with file, line and
    column, for what cannot be read.
    """
    if not path.exists():
        near = [file.name for file in path.parent.glob("*") if file.suffix in _TABLES]
        hint = f"; {nearest(path.name, near)}" if near else ""
        raise DataError(f"cannot read the cases of {path}: no such file{hint}")
    if path.suffix not in _TABLES or (path.suffix == ".jsonl" and not _is_table(path)):
        yield from read_cases(path, agents)
        return
    yield from check_cases(_cases(path), agents)


def given_cases(
    cases: GivenCases,
    agents: Sequence[str] | None = None,
    name_of: Callable[[int, Row], str] = lambda index, _: f"row-{index + 1}",
) -> Iterator[Case]:
    """The same of cases given in Python: of a file, or of rows and dialogues as they would stand in
    one, where `name_of` gives the id of a row without one."""
    if isinstance(cases, str | Path):
        return read_case_file(Path(cases), agents)
    numbered: list[tuple[str, Case]] = []
    for index, row in enumerate(cases):
        where = f"cases[{index}]"
        if not isinstance(cast("object", row), Case | Mapping):
            raise DataError(
                f"{where}: not a case; give a dict with 'user' and 'expected_sub_agents', or a Case"
            )
        case = row if isinstance(row, Case) else case_of(row, where, name_of(index, row))
        numbered.append((where, case))
    return check_cases(numbered, agents)


def file_name(cases: GivenCases) -> str:
    """The file of cases, by which the grid's own file would name it."""
    if isinstance(cases, str | Path):
        return str(cases)
    return "(given in Python)"


def _is_table(path: Path) -> bool:
    try:
        for _, row in read_objects(path, "case"):
            return "message" in row
    except DataError:
        # Whoever reads the cases says what is wrong with them.
        return False
    return False


def _cases(path: Path) -> Iterator[tuple[str, Case]]:
    for number, (where, row) in enumerate(_rows(path), 1):
        yield where, case_of(row, where, f"row-{number}")


def _rows(path: Path) -> Iterator[tuple[str, Row]]:
    """The rows of a table, each with its place."""
    match path.suffix.lower():
        case ".csv":
            yield from csv_rows(path, "case", _check_columns)
        case ".jsonl":
            for where, row in read_objects(path, "case"):
                _check_columns(row, where)
                yield where, row
        case _:
            yield from _parquet_rows(path)


def csv_rows(
    path: Path, noun: str, check: Callable[[Iterable[str], str], None]
) -> Iterator[tuple[str, Row]]:
    """The rows of a table with commas, each with its place; `check` is called with the names of its columns."""
    # A mark at the beginning of the file is what spreadsheets write.
    lines = read_text(path, f"the {noun}s of ").removeprefix("\ufeff").splitlines(keepends=True)
    reader = csv.DictReader(lines, strict=True)
    try:
        reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
        check(reader.fieldnames, f"{path}:{reader.line_num}")
        for row in reader:
            where = f"{path}:{reader.line_num}"
            cells: list[Any] = list(row.values())
            # None stands for a column that is missing, and names those that are too many.
            if None in row or None in cells:
                raise DataError(
                    f"{where}: other columns than the {len(reader.fieldnames)} of the first line; put "
                    'a text that holds a comma into "quotation marks"'
                )
            if any(map(str.strip, cells)):
                yield where, row
    except csv.Error as error:
        raise DataError(f"{path}:{reader.reader.line_num}: no CSV ({error})") from error


def _parquet_rows(path: Path) -> Iterator[tuple[str, Row]]:
    if find_spec("pyarrow") is None:
        raise DataError("a table of Parquet is read with pyarrow; run: pip install pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    try:
        table: Any = parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read the cases of {path}: {error}") from error
    _check_columns(table.column_names, str(path))
    for number, row in enumerate(table.to_pylist(), 1):
        yield f"{path}:{number}", row


def _check_columns(names: Iterable[str], where: str) -> None:
    """Raises DataError where there is no message, or a name is nearly that of a column."""
    present = list(names)
    slip = slip_in(present, COLUMNS, _LIKE_A_COLUMN)
    if slip is not None:
        raise DataError(f"{where}: column {slip[0]!r}: did you mean {slip[1]!r}?")
    if "message" not in present:
        columns = ", ".join(map(repr, present)) or "none"
        raise DataError(
            f"{where}: no column 'message'; those there are: {columns}. Call the one that is asked 'message'"
        )


def case_of(row: Row, where: str, name: str) -> Case:
    """The case of one row; `name` is its id where the row has none. Raises DataError, with the column."""
    if "turns" in row or "user" in row:
        return make_case({"id": name, **row}, where)
    message = _text(row, "message", where)
    if not message:
        raise DataError(f"{where}, message: it is empty; write what is asked, or take the row out")
    agents = _agents(row, where)
    ask = Ask(
        user=message,
        expected=agents or (),
        expected_text=_text(row, "expected_text", where) or None,
        unlabelled=agents is None,
    )
    kind: Kind = "single"
    if agents is not None:
        kind = kind_of([ask])
    return Case(
        id=_text(row, "id", where) or name,
        kind=kind,
        domain="",
        turns=(ask,),
        source="table",
        cluster=_text(row, "cluster", where),
    )


def _agents(row: Row, where: str) -> tuple[str, ...] | None:
    """Whom a message is for; None where that is not known. The word `none` says: for nobody."""
    value = row.get("expected_agents")
    if isinstance(value, list | tuple):
        return tuple(map(str, cast("list[object]", value)))
    text = _text(row, "expected_agents", where)
    if not text:
        return None
    if text == "none":
        return ()
    names = tuple([name.strip() for name in text.split("|") if name.strip()])
    if ANYBODY in names:
        raise DataError(f"{where}, expected_agents: {ANYBODY!r} is no agent; name each")
    return names


def _text(row: Row, column: str, where: str) -> str:
    value = row.get(column)
    if value is None:
        return ""
    if isinstance(value, bool | dict | list):
        raise DataError(f"{where}, {column}: {value!r} is no text; write one")
    return str(value).strip()
