"""`kit migrate`: a store is copied into an empty one, such as a file into PostgreSQL."""

from argparse import Namespace
from contextlib import closing
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    """Adds the command to a parser's."""
    migrate = commands.add_parser(
        "migrate", help="copy a store into an empty one, such as a file into PostgreSQL"
    )
    words = "the path of a store's file, the URL of a PostgreSQL database, or of an OpenSearch: its documents alone"
    migrate.add_argument("source", metavar="FROM", help=words)
    migrate.add_argument("target", metavar="TO", help="the same; it must hold nothing yet")
    migrate.set_defaults(run=_migrate)


def _migrate(arguments: Namespace) -> int:
    from kit.core.display.count import many
    from kit.core.errors import StoreError
    from kit.core.secret import is_url, without_password
    from kit.stores.copying import copy_documents, copy_store
    from kit.stores.opening import open_place

    if not is_url(arguments.source) and not Path(arguments.source).is_file():
        raise StoreError(f"there is no store at {arguments.source}: say which file to copy")
    if arguments.target == ":memory:":
        raise StoreError(":memory: ends with this command: say which file or database to copy to")
    with (
        closing(open_place(arguments.source)) as source,
        closing(open_place(arguments.target)) as target,
    ):
        if source.backend is None and target.backend is None:
            tables = copy_store(source, target)
        else:
            tables = copy_documents(source, target)
    print(f"{without_password(arguments.source)} -> {without_password(arguments.target)}")
    for table in tables:
        outcome = "the same in both" if table.is_same else "NOT the same in both"
        print(f"{table.name}: {many(table.rows, 'row')}, {outcome}")
    return int(not all(table.is_same for table in tables))
