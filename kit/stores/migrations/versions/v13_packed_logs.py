"""Logs may be packed, and turns say what lists are filtered by.

The logs of a file stay as they are: to pack them now would write all of it anew.
"""

from typing import Any

from alembic import op
from pydantic import ValidationError
from sqlalchemy import text

from kit.core.display.turn_parts import ending_of
from kit.core.record import Measures
from kit.stores.rows import failure_axes

revision = "0013"
down_revision = "0012"

_TURNS = text("SELECT number, status, cap_behavior, measures FROM turns")
_KEEP = text("UPDATE turns SET ending = :ending, axes = :axes WHERE number = :number")


def upgrade() -> None:
    """Adds the columns, and fills in those of turns."""
    op.execute("ALTER TABLE logs ADD COLUMN size INTEGER NOT NULL DEFAULT 0")
    for name in ("ending", "axes"):
        op.execute(f"ALTER TABLE turns ADD COLUMN {name} TEXT NOT NULL DEFAULT ''")
    changes: list[dict[str, Any]] = []
    for number, status, cap_behavior, measures in op.get_bind().execute(_TURNS):
        try:
            measured = Measures.model_validate_json(measures)
        except ValidationError:
            # Somebody else wrote the row: it must not keep the file from being opened.
            measured = Measures()
        axes = " ".join(failure_axes(measured, cap_behavior))
        ending = ending_of(status, measured.parts)
        changes.append({"number": number, "ending": ending, "axes": axes})
    if changes:
        op.get_bind().execute(_KEEP, changes)
