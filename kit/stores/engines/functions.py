"""Functions of SQL that SQLite and PostgreSQL know by other names."""

from typing import Any

from sqlalchemy import ColumnElement, Integer, Text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class position(FunctionElement[int]):
    """`position(text, part)`: where a part of a text begins, from 1; 0 where it has none."""

    name = "position"
    type = Integer()
    inherit_cache = True


@compiles(position)
def _position(element: position, compiler: SQLCompiler, **options: Any) -> str:
    return f"instr({compiler.process(element.clauses, **options)})"


@compiles(position, "postgresql")
def _postgres_position(element: position, compiler: SQLCompiler, **options: Any) -> str:
    return f"strpos({compiler.process(element.clauses, **options)})"


class casefold(FunctionElement[str]):
    """`casefold(text)`: a text as it is compared in any case."""

    name = "casefold"
    type = Text()
    inherit_cache = True


@compiles(casefold)
def _casefold(element: casefold, compiler: SQLCompiler, **options: Any) -> str:
    return f"casefold({compiler.process(element.clauses, **options)})"


@compiles(casefold, "postgresql")
def _postgres_casefold(element: casefold, compiler: SQLCompiler, **options: Any) -> str:
    # By this collation it knows the letters of every language, whatever the database's own is.
    return f'lower({compiler.process(element.clauses, **options)} COLLATE "und-x-icu")'


class _Field(FunctionElement[str]):
    name = "json_field"
    type = Text()
    inherit_cache = True


@compiles(_Field)
def _field(element: _Field, compiler: SQLCompiler, **options: Any) -> str:
    document, name = element.clauses
    return f"{compiler.process(document, **options)} ->> {compiler.process(name, **options)}"


@compiles(_Field, "postgresql")
def _postgres_field(element: _Field, compiler: SQLCompiler, **options: Any) -> str:
    document, name = element.clauses
    return f"CAST({compiler.process(document, **options)} AS json) ->> {compiler.process(name, **options)}"


def json_field(document: ColumnElement[Any], name: str) -> ColumnElement[str]:
    """Returns a field of a column that holds JSON as text."""
    return _Field(document, name)
