"""Brings a store of an earlier schema to that of today, with every row, by Alembic.

`versions` has one script for all schemas before 17, and one for each later change that moves rows. What is
derived from tables (views, indexes, triggers, sums) is dropped, and made anew by whoever calls this, as
kit/stores/tables.py has it.
A new one raises `SCHEMA` in kit/stores/tables.py and is a file `vNN_what_changes.py` in `versions`: a docstring,
`revision`, `down_revision` (the last one's) and `upgrade()`, which works on `alembic.op`.
PostgreSQL begins with schema 17: the first script is SQLite's alone, each later one has to run on both.
"""

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

_FOLDER = Path(__file__).parent
_DERIVED = text("""
SELECT type, name FROM sqlite_master
WHERE type = 'view'
  OR type IN ('index', 'trigger') AND sql IS NOT NULL AND tbl_name IN ('turns', 'messages')
""")
# What Alembic's scripts write to is a global of the process.
_one_at_a_time = threading.Lock()


def migrate(connection: Connection, schema: int) -> None:
    """Migrates a store that says it has a schema, within the caller's transaction."""
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    with _one_at_a_time:
        # In PostgreSQL triggers and views are replaced in their places.
        if connection.dialect.name == "sqlite":
            for kind, name in connection.execute(_DERIVED).all():
                connection.exec_driver_sql(f"DROP {kind} {name}")
        connection.exec_driver_sql("DROP TABLE IF EXISTS rollups")
        # The mark of its own counts: a file from before there was Alembic has no other.
        command.stamp(config, _revision_of(config, schema), purge=True)
        command.upgrade(config, "head")


def _revision_of(config: Config, schema: int) -> str:
    """Returns the newest revision that a file of a schema has already."""
    for script in ScriptDirectory.from_config(config).walk_revisions():
        if int(script.revision) <= schema:
            return script.revision
    return "base"
