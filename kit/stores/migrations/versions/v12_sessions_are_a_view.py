"""A table of sessions, which no turn wrote to, makes way for the view of its name.

With this schema a file says its revision to Alembic too.
"""

from alembic import op
from sqlalchemy import inspect

revision = "0012"
down_revision = "0010"


def upgrade() -> None:
    """Drops the table where a file has it."""
    if "agent_sessions" in inspect(op.get_bind()).get_table_names():
        op.drop_table("agent_sessions")
