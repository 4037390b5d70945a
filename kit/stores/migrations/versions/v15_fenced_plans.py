"""A plan is held by a fence that grows, where it was held until a moment of its holder's clock."""

from alembic import op
from sqlalchemy import inspect

revision = "0015"
down_revision = "0014"

_RENAMED = """
UPDATE agent_plans SET document = json_set(
  json_remove(document, '$.lease_owner', '$.lease_expires'),
  '$.holder', document ->> '$.lease_owner',
  '$.fence', 1
)
"""


def upgrade() -> None:
    """Renames the holder of each plan, and drops the moment."""
    tables = inspect(op.get_bind())
    if "agent_plans" not in tables.get_table_names():
        return
    columns = {column["name"] for column in tables.get_columns("agent_plans")}
    op.execute(_RENAMED)
    if "lease_expires" in columns:
        op.execute("DROP INDEX IF EXISTS agent_plans_open")
        op.execute("ALTER TABLE agent_plans DROP COLUMN lease_expires")
