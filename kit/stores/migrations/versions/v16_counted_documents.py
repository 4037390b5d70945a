"""Plans and events get columns that they are counted and listed by; the kind of a failure is a field of its plan."""

import json
from collections.abc import Sequence
from typing import Any

from alembic import op
from sqlalchemy import Column, Text, inspect, text

from kit.stores.tables import FLOAT, WHOLE

revision = "0016"
down_revision = "0015"

_BATCH = 5_000
"""Rows that are in memory at a time."""
# Events refuse to be changed; the columns repeat what stands in them.
_ALLOW = {
    "sqlite": "DROP TRIGGER IF EXISTS agent_events_changed",
    "postgresql": "ALTER TABLE agent_events DISABLE TRIGGER agent_events_changed",
}


def upgrade() -> None:
    """Adds the columns, fills them in from the documents, and indexes them."""
    # A store in which no documents were opened has none of these tables yet.
    if "agent_plans" not in inspect(op.get_bind()).get_table_names():
        return
    plans: list[Column[Any]] = [
        Column("session_id", Text, nullable=False, server_default=""),
        Column("replan_count", WHOLE, nullable=False, server_default="0"),
        Column("created_at", FLOAT, nullable=False, server_default="0"),
        Column("completed_at", FLOAT),
        Column("task_type", Text),
        Column("failure_kind", Text),
    ]
    events: list[Column[Any]] = [
        Column("user_id", Text),
        Column("agent", Text),
        Column("status", Text),
        Column("duration_ms", WHOLE),
        Column("lock_wait_ms", WHOLE),
    ]
    dialect = op.get_bind().dialect.name
    op.execute(_ALLOW[dialect])
    _fill("agent_plans", "rowid", plans)
    _fill("agent_events", "seq", events)
    if dialect == "postgresql":
        # SQLite's is made anew when documents are opened.
        op.execute("ALTER TABLE agent_events ENABLE TRIGGER agent_events_changed")
    op.create_index(
        "agent_plans_by_time", "agent_plans", ["tenant_id", "created_at"], if_not_exists=True
    )
    op.create_index("agent_plans_by_end", "agent_plans", ["completed_at"], if_not_exists=True)
    kinds = ["tenant_id", "event_type", "agent", "skill_id", "status", "large_response_triggered"]
    of_index = [*kinds, "lock_wait_ms", "duration_ms", "ts"]
    op.create_index("agent_events_by_kind", "agent_events", of_index, if_not_exists=True)


def _fill(table: str, number: str, columns: Sequence[Column[Any]]) -> None:
    """Adds columns, and gives each row the fields of its document; `number` is the column of its place."""
    names = [column.name for column in columns]
    there = {column["name"] for column in inspect(op.get_bind()).get_columns(table)}
    for column in columns:
        if column.name not in there:
            op.add_column(table, column)
    rows = text(
        f"SELECT {number}, document FROM {table} WHERE {number} > :last ORDER BY {number} LIMIT {_BATCH}"
    )
    values = ", ".join(f"{name} = :{name}" for name in names)
    keep = text(f"UPDATE {table} SET document = :document, {values} WHERE {number} = :number")
    last = 0
    while batch := op.get_bind().execute(rows, {"last": last}).all():
        changes: list[dict[str, Any]] = []
        for last, document in batch:
            try:
                fields = _fields(document)
            except (ValueError, AttributeError):
                # Somebody else wrote the row: it must not keep the store from being opened.
                continue
            change = {name: fields.get(name) for name in names}
            for name, default in (("session_id", ""), ("replan_count", 0), ("created_at", 0.0)):
                if name in change and change[name] is None:
                    change[name] = default
            changes.append(
                {**change, "number": last, "document": json.dumps(fields, ensure_ascii=False)}
            )
        if changes:
            op.get_bind().execute(keep, changes)


def _fields(document: str) -> dict[str, Any]:
    """Returns the fields of a document; of a plan the kind of its failure is one of them."""
    fields: dict[str, Any] = json.loads(document)
    failure: dict[str, Any] = fields.get("failure") or {}
    if "kind" in failure:
        fields["failure_kind"] = failure.pop("kind")
    return fields
