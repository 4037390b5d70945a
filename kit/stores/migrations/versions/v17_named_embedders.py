"""A vector of a memory has the name of the embedder that made it."""

from alembic import op
from sqlalchemy import Column, Text, inspect

revision = "0017"
down_revision = "0016"

_INDEX = """
CREATE INDEX agent_memory_by_scope ON agent_memory (tenant_id, scope, user_id, session_id, embedder)
WHERE embedding IS NOT NULL
"""


def upgrade() -> None:
    """Adds the column, to the index of vectors too. No vector was written before, so each has a name."""
    tables = inspect(op.get_bind())
    if "agent_memory" not in tables.get_table_names():
        return
    columns = {column["name"] for column in tables.get_columns("agent_memory")}
    if "embedder" in columns:
        return
    op.add_column("agent_memory", Column("embedder", Text))
    op.execute("DROP INDEX IF EXISTS agent_memory_by_scope")
    op.execute(_INDEX)
