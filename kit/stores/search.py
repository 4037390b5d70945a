"""Lists of one principal's turns and conversations, as SQL over all of them, however many there are."""

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from kit.core.context import Principal
from kit.core.display.turn_parts import Ending
from kit.stores.recall import AGAIN
from kit.stores.rows import COLUMNS, readable, record_of
from kit.stores.turn_filter import (
    Conversation,
    FailureAxis,
    TurnChoices,
    TurnFilter,
    TurnPage,
)

_OWN = "tenant_id = :tenant AND user_id = :user"
_AGENT = "EXISTS (SELECT 1 FROM json_each(measures, '$.agents') WHERE {})"
# What `ending_of` (kit/core/display/turn_parts.py) says of a row. A row that was begun and not ended has no parts.
_PARTS = "coalesce(measures ->> '$.parts.{}', 0)"
_ANSWERED = f"({_PARTS.format('whole')} + {_PARTS.format('partly')} > 0)"
_COMPLETE = f"""({_PARTS.format("partly")} + {_PARTS.format("failed")} + {_PARTS.format("stopped")}
  + {_PARTS.format("left_out.count")} + coalesce(json_array_length(measures, '$.parts.over_cap'), 0) = 0)"""
_WHOLE = f"(status = 'ok' AND {_COMPLETE})"
_ENDINGS: Mapping[Ending, str] = {
    "answered": _WHOLE,
    "partly": f"status IN ('ok', 'failed') AND NOT {_WHOLE} AND {_ANSWERED}",
    "nothing": f"status IN ('ok', 'failed') AND NOT {_WHOLE} AND NOT {_ANSWERED}",
}
"""Other endings are a status by themselves."""
_LACKS = "value ->> 'partial' OR NOT value ->> 'ok'"
_AXES: Mapping[FailureAxis, str] = {
    "invocation": _AGENT.format("value ->> 'axis' = 'invocation'"),
    "data": _AGENT.format("value ->> 'axis' = 'data' OR value ->> 'data_faults' > 0"),
    "partial": f"{_AGENT.format(_LACKS)} AND {_AGENT.format(f'NOT ({_LACKS})')}",
    "cap": "cap_behavior = 'over'",
}


def search(
    db: sqlite3.Connection, who: Principal, by: TurnFilter, limit: int, offset: int
) -> TurnPage:
    """Returns `limit` of a principal's turns that pass a filter, past the first `offset`, newest first."""
    db.create_function("casefold", 1, str.casefold, deterministic=True)
    where, values = _where(who, by)
    count, longest = db.execute(
        f"SELECT count(*), max(seconds) FROM turns WHERE {where}", values
    ).fetchone()
    sql = (
        f"SELECT {', '.join(COLUMNS)} FROM turns WHERE {where} ORDER BY started_at DESC, "
        f"number DESC LIMIT :limit OFFSET :offset"
    )
    rows = db.execute(sql, {**values, "limit": limit, "offset": offset})
    turns = (readable(record_of, row, row[0]) for row in rows)
    return TurnPage(tuple(turn for turn in turns if turn is not None), count, longest or 0.0)


def choices(db: sqlite3.Connection, who: Principal) -> TurnChoices:
    """Returns what a principal's turns can be chosen by."""
    values = {"tenant": who.tenant_id, "user": who.user_id}
    pairs = db.execute(
        f"SELECT pattern, model, count(*) FROM turns WHERE {_OWN} GROUP BY pattern, model", values
    ).fetchall()
    took: list[Any] = []
    for row in db.execute(
        f"SELECT seconds FROM turns WHERE {_OWN} AND seconds IS NOT NULL ORDER BY 1", values
    ):
        took.append(row[0])
    if took:
        slow = took[-(-len(took) * 95 // 100) - 1]
    else:
        slow = 0.0
    patterns, models = ({pair[place] for pair in pairs} - {""} for place in (0, 1))
    return TurnChoices(
        sum(pair[2] for pair in pairs), tuple(sorted(patterns)), tuple(sorted(models)), slow
    )


def conversations(
    db: sqlite3.Connection, who: Principal, limit: int, offset: int
) -> tuple[list[Conversation], int]:
    """Returns `limit` of a principal's conversations, past the first `offset`, the one with the
    newest turn first; and how many there are. A turn that was asked again, or by a job, is none."""
    values = {"tenant": who.tenant_id, "user": who.user_id, "limit": limit, "offset": offset}
    own = f"{_OWN} AND session_id NOT LIKE '{AGAIN}%' AND session_id NOT LIKE 'job:%'"
    (count,) = db.execute(
        f"SELECT count(DISTINCT session_id) FROM turns WHERE {own}", values
    ).fetchone()
    rows = db.execute(
        f"""SELECT session_id, (SELECT message FROM turns t WHERE t.session_id = s.session_id AND +t.tenant_id = :tenant
        AND +t.user_id = :user ORDER BY started_at LIMIT 1), turns, newest FROM
        (SELECT session_id, count(*) AS turns, max(started_at) AS newest FROM turns WHERE {own}
        GROUP BY session_id ORDER BY newest DESC LIMIT :limit OFFSET :offset) s ORDER BY newest DESC""",
        values,
    )
    return [Conversation(*row) for row in rows], count


def _where(who: Principal, by: TurnFilter) -> tuple[str, dict[str, Any]]:
    """Returns the condition of a filter, and its values."""
    values: dict[str, Any] = {
        "tenant": who.tenant_id,
        "user": who.user_id,
        "session": by.session,
        "seconds": by.at_least,
    }
    conditions = [
        _OWN if not by.session else "+tenant_id = :tenant AND +user_id = :user"
    ]  # a session has few turns
    for number, word in enumerate(by.text.split()):
        conditions.append(f"instr(casefold(message), :word{number})")
        values[f"word{number}"] = word.casefold()
    for name, wanted in (("pattern", by.patterns), ("model", by.models)):
        if wanted:
            conditions.append(f"{name} IN (SELECT value FROM json_each(:{name}))")
            values[name] = json.dumps(wanted)
    if by.agents:
        conditions.append(
            "EXISTS (SELECT 1 FROM json_each(invoked) WHERE value IN (SELECT value FROM json_each(:agents)))"
        )
        values["agents"] = json.dumps(by.agents)
    if by.session:
        conditions.append("session_id = :session")
    if by.at_least:
        conditions.append("seconds >= :seconds")
    for ways in (
        [_ENDINGS.get(ending, f"status = '{ending}'") for ending in by.endings],
        [_AXES[axis] for axis in by.axes],
    ):
        if ways:
            conditions.append("(" + " OR ".join(f"({way})" for way in ways) + ")")
    return " AND ".join(conditions), values
