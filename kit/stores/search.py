"""Lists of one principal's turns and conversations, as SQL over all of them, however many there are."""

import json
import math
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from kit.core.context import Principal
from kit.core.display.turn_parts import Ending
from kit.stores.recall import AGAIN
from kit.stores.rows import reader_values, records_of
from kit.stores.statements import SELECT_TURNS
from kit.stores.turn_filter import (
    Conversation,
    FailureAxis,
    TurnChoices,
    TurnFilter,
    TurnPage,
)

# What `ending_of` (kit/core/display/turn_parts.py) says of a row. A row that was begun and not ended
# has no parts.
_HAS_ANSWER = """
(coalesce(measures ->> '$.parts.whole', 0) + coalesce(measures ->> '$.parts.partly', 0) > 0)
"""
_IS_ANSWERED = """
(
  status = 'ok'
  AND coalesce(measures ->> '$.parts.partly', 0) = 0
  AND coalesce(measures ->> '$.parts.failed', 0) = 0
  AND coalesce(measures ->> '$.parts.stopped', 0) = 0
  AND coalesce(measures ->> '$.parts.left_out.count', 0) = 0
  AND coalesce(json_array_length(measures, '$.parts.over_cap'), 0) = 0
)
"""
_ENDINGS: Mapping[Ending, str] = {
    "answered": _IS_ANSWERED,
    "partly": f"status IN ('ok', 'failed') AND NOT {_IS_ANSWERED} AND {_HAS_ANSWER}",
    "nothing": f"status IN ('ok', 'failed') AND NOT {_IS_ANSWERED} AND NOT {_HAS_ANSWER}",
}
"""Every other ending is a status by itself."""

_AXES: Mapping[FailureAxis, str] = {
    "invocation": """
        EXISTS (
          SELECT 1 FROM json_each(measures, '$.agents') WHERE value ->> 'axis' = 'invocation')""",
    "data": """
        EXISTS (
          SELECT 1 FROM json_each(measures, '$.agents')
          WHERE value ->> 'axis' = 'data' OR value ->> 'data_faults' > 0)""",
    "partial": """
        EXISTS (
          SELECT 1 FROM json_each(measures, '$.agents')
          WHERE value ->> 'partial' OR NOT value ->> 'ok')
        AND EXISTS (
          SELECT 1 FROM json_each(measures, '$.agents')
          WHERE NOT (value ->> 'partial' OR NOT value ->> 'ok'))""",
    "cap": "cap_behavior = 'over'",
}

_ASKED_ANY = """
EXISTS (
  SELECT 1 FROM json_each(invoked) WHERE value IN (SELECT value FROM json_each(:agents)))
"""

_PATTERNS_AND_MODELS = """
SELECT pattern, model, count(*) FROM turns
WHERE tenant_id = :tenant AND user_id = :user
GROUP BY pattern, model
"""

_SECONDS = """
SELECT seconds FROM turns
WHERE tenant_id = :tenant AND user_id = :user AND seconds IS NOT NULL
ORDER BY seconds
"""

# A turn that was asked again, or by a job, is no conversation.
_COUNT_CONVERSATIONS = """
SELECT count(DISTINCT session_id) FROM turns
WHERE tenant_id = :tenant AND user_id = :user
  AND session_id NOT LIKE :again AND session_id NOT LIKE 'job:%'
"""

_CONVERSATIONS = """
WITH conversation AS (
  SELECT session_id, count(*) AS turns, max(started_at) AS newest FROM turns
  WHERE tenant_id = :tenant AND user_id = :user
    AND session_id NOT LIKE :again AND session_id NOT LIKE 'job:%'
  GROUP BY session_id ORDER BY newest DESC LIMIT :limit OFFSET :offset
)
SELECT
  session_id,
  (
    SELECT message FROM turns
    WHERE turns.session_id = conversation.session_id
      AND +tenant_id = :tenant AND +user_id = :user
    ORDER BY started_at LIMIT 1
  ),
  turns, newest
FROM conversation ORDER BY newest DESC
"""


def search(
    db: sqlite3.Connection, principal: Principal, by: TurnFilter, limit: int, offset: int
) -> TurnPage:
    """Returns `limit` of a principal's turns that pass a filter, past the first `offset`, newest first."""
    db.create_function("casefold", 1, str.casefold, deterministic=True)
    where, values = _where(principal, by)
    counting = f"SELECT count(*), max(seconds) FROM turns WHERE {where}"
    count, longest = db.execute(counting, values).fetchone()
    page = f"""
        {SELECT_TURNS}
        WHERE {where}
        ORDER BY started_at DESC, number DESC LIMIT :limit OFFSET :offset"""
    turns = records_of(db.execute(page, {**values, "limit": limit, "offset": offset}))
    return TurnPage(tuple(turns), count, longest or 0.0)


def choices(db: sqlite3.Connection, principal: Principal) -> TurnChoices:
    """Returns what a principal's turns can be chosen by."""
    values = reader_values(principal)
    total = 0
    patterns: set[str] = set()
    models: set[str] = set()
    for pattern, model, count in db.execute(_PATTERNS_AND_MODELS, values):
        total += count
        patterns.add(pattern)
        models.add(model)
    seconds = [row[0] for row in db.execute(_SECONDS, values)]
    slow = 0.0
    if seconds:
        rank = math.ceil(len(seconds) * 95 / 100)
        slow = seconds[rank - 1]
    return TurnChoices(total, tuple(sorted(patterns - {""})), tuple(sorted(models - {""})), slow)


def conversations(
    db: sqlite3.Connection, principal: Principal, limit: int, offset: int
) -> tuple[list[Conversation], int]:
    """Returns `limit` of a principal's conversations, past the first `offset`, the one with the
    newest turn first; and how many there are."""
    values = {**reader_values(principal), "again": f"{AGAIN}%"}
    (count,) = db.execute(_COUNT_CONVERSATIONS, values).fetchone()
    rows = db.execute(_CONVERSATIONS, {**values, "limit": limit, "offset": offset})
    return [Conversation(*row) for row in rows], count


def _where(principal: Principal, by: TurnFilter) -> tuple[str, dict[str, Any]]:
    """Returns the condition of a filter, and its values."""
    values: dict[str, Any] = {
        **reader_values(principal),
        "session": by.session,
        "seconds": by.at_least,
    }
    if by.session:
        # A session has few turns: the `+` keeps SQLite from walking the user's index instead.
        conditions = ["session_id = :session", "+tenant_id = :tenant", "+user_id = :user"]
    else:
        conditions = ["tenant_id = :tenant", "user_id = :user"]
    for number, word in enumerate(by.text.split()):
        conditions.append(f"instr(casefold(message), :word{number})")
        values[f"word{number}"] = word.casefold()
    if by.patterns:
        conditions.append("pattern IN (SELECT value FROM json_each(:patterns))")
        values["patterns"] = json.dumps(by.patterns)
    if by.models:
        conditions.append("model IN (SELECT value FROM json_each(:models))")
        values["models"] = json.dumps(by.models)
    if by.agents:
        conditions.append(_ASKED_ANY)
        values["agents"] = json.dumps(by.agents)
    if by.at_least:
        conditions.append("seconds >= :seconds")
    if by.endings:
        conditions.append(
            _any_of(_ENDINGS.get(ending, f"status = '{ending}'") for ending in by.endings)
        )
    if by.axes:
        conditions.append(_any_of(_AXES[axis] for axis in by.axes))
    return " AND ".join(conditions), values


def _any_of(conditions: Iterable[str]) -> str:
    return "(" + " OR ".join(f"({condition})" for condition in conditions) + ")"
