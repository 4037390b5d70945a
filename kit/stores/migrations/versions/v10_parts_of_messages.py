"""The measures of a turn say what became of the parts of its message."""

import json
from typing import Any

import orjson
from alembic import op
from sqlalchemy import text

from kit.core.display.turn_parts import TurnParts, turn_parts
from kit.core.outcome import RoutingDecision

revision = "0010"
down_revision = "0009"

_TURNS = text("SELECT number, invoked, failed, log FROM turns LEFT JOIN logs USING (number)")

_KEEP_PARTS = text("""
UPDATE turns
SET measures = json_set(json_remove(measures, '$.left_out'), '$.parts', json(:parts))
WHERE number = :number AND json_valid(measures)
""")


def upgrade() -> None:
    """Counts the parts of every turn."""
    changes: list[dict[str, Any]] = []
    for number, invoked, failed, log in op.get_bind().execute(_TURNS):
        try:
            parts = _parts_of(log, invoked, failed)
        except (ValueError, TypeError, LookupError):
            # Somebody else wrote the row: it must not keep the file from being opened.
            parts = TurnParts()
        changes.append({"number": number, "parts": parts.model_dump_json()})
    if changes:
        op.get_bind().execute(_KEEP_PARTS, changes)


def _parts_of(log: str | None, invoked: str, failed: str) -> TurnParts:
    """Counts the parts of a turn in its log, or in its columns where the log has no routing decision."""
    events: list[dict[str, Any]] = orjson.loads(log or "[]")
    for event in reversed(events):
        if event["body"]["kind"] == "routing":
            return turn_parts(RoutingDecision.model_validate(event["body"]["decision"]))
    failures = set(json.loads(failed))
    answered = set(json.loads(invoked)) - failures
    return TurnParts(whole=len(answered), failed=len(failures))
