"""Functions of SQL that SQLite and PostgreSQL know by other names."""

from typing import Any

from sqlalchemy import Integer, Text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement, GenericFunction


class instr(GenericFunction[int]):  # SQL writes it so
    """`instr(text, part)`: where a part of a text begins, from 1; 0 where it has none."""

    type = Integer()
    inherit_cache = True


@compiles(instr, "postgresql")
def _strpos(element: instr, compiler: SQLCompiler, **options: Any) -> str:
    return f"strpos({compiler.process(element.clauses, **options)})"


class casefold(GenericFunction[str]):
    """`casefold(text)`: a text as it is compared in any case."""

    type = Text()
    inherit_cache = True


@compiles(casefold, "postgresql")
def _lower(element: casefold, compiler: SQLCompiler, **options: Any) -> str:
    # By this collation it knows the letters of every language, whatever the database's own is.
    return f'lower({compiler.process(element.clauses, **options)} COLLATE "und-x-icu")'


class json_field(FunctionElement[str]):
    """`json_field(document, name)`: a field of a column that holds JSON as text."""

    type = Text()
    inherit_cache = True


@compiles(json_field)
def _field(element: json_field, compiler: SQLCompiler, **options: Any) -> str:
    document, name = (compiler.process(clause, **options) for clause in element.clauses)
    if compiler.dialect.name == "postgresql":
        document = f"CAST({document} AS json)"
    return f"{document} ->> {name}"
