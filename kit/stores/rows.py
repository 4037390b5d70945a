"""A turn as a row of SQL, and back, with the statements that write and read it.

What SQL or JSON cannot hold is worded, so that nothing odd costs a turn its trace.
"""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import Any, TypeVar, cast

import orjson
from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from kit.core.errors import describe_error
from kit.core.event import Event
from kit.core.record import UNANSWERED, Measures, Note, ShownComponent, TurnRecord

log = logging.getLogger("kit.store")
T = TypeVar("T")
_AS_JSON = ("invoked", "failed", "measures")
_PLAIN = tuple(name for name in TurnRecord.model_fields if name not in _AS_JSON)
COLUMNS = (*_PLAIN, *_AS_JSON)
_plain_values = cast("Callable[[Any], tuple[Any, ...]]", itemgetter(*_PLAIN))
_UNMEASURED: Measures = TurnRecord.model_fields["measures"].default
_BARE = _UNMEASURED.model_dump_json()
_log = TypeAdapter(list[Event])
_names = TypeAdapter(tuple[str, ...])
_fields = attrgetter("values_by_field")
_AS_PYDANTIC = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
"""Leaves to pydantic what orjson would spell differently."""

_FIXED = frozenset(
    {"id", "session_id", "tenant_id", "user_id", "message", "pattern", "model", "started_at", "cap"}
)
"""What is known when a turn is accepted, and never changes."""
_ALL = (*COLUMNS, "owner")
BEGIN_TURN = f"INSERT INTO turns ({', '.join(_ALL)}) VALUES ({', '.join('?' * len(_ALL))})"
_SAME = " WHERE tenant_id = excluded.tenant_id AND user_id = excluded.user_id AND session_id = excluded.session_id"


def _upsert(columns: Iterable[str]) -> str:
    values = ", ".join(f"{name} = excluded.{name}" for name in columns)
    return f"{BEGIN_TURN} ON CONFLICT (id) DO UPDATE SET {values}{_SAME} RETURNING number"


BEGIN_AGAIN = _upsert(_ALL)
END_TURN = _upsert(name for name in COLUMNS if name not in _FIXED)
RUNNING = "status = 'running' AND number > (SELECT coalesce(max(through), 0) FROM rollups)"
"""Turns that run: none of them is summed up."""
KEEP_LOG = "INSERT OR REPLACE INTO logs VALUES (?, ?)"
KEEP_RUNNING_LOG = (
    "INSERT OR REPLACE INTO logs SELECT number, ? FROM turns WHERE id = ? AND status = 'running'"
)
DROP_LOG = (
    "DELETE FROM logs WHERE number = (SELECT number FROM turns WHERE id = ? AND NOT "
    "(status = 'running' AND owner = ?))"
)
"""What was kept of a turn goes when it begins again; it stays when the row of a running turn is written again."""
_READER = "(:tenant IS NULL OR tenant_id = :tenant AND user_id = :user)"
"""Holds a query over `turns` to those of one principal; an operator has no tenant."""
TURN = f"SELECT {', '.join(COLUMNS)} FROM turns WHERE id = :turn AND {_READER}"
TURN_LOG = f"SELECT log FROM turns JOIN logs USING (number) WHERE id = :turn AND {_READER}"
INSERT_MESSAGE = "INSERT OR REPLACE INTO messages VALUES (?, ?, ?, ?, ?, ?)"
INSERT_NOTE = "INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?)"
KEEP_RESUMED = (
    "INSERT OR REPLACE INTO notes SELECT session_id, 'resumed', id, ? FROM turns WHERE id = ?"
)
"""When a user came back to a turn: its row says when it began, and how long it took without the pause."""
KEEP_PROMPT = """INSERT INTO prompts SELECT :cohort, :agent, :text, :tools, :since WHERE NOT EXISTS
  (SELECT 1 FROM prompts
WHERE cohort = :cohort AND tools = :tools AND since = (SELECT max(since) FROM prompts WHERE cohort = :cohort))"""
PROMPT = "SELECT cohort, agent, text, tools FROM prompts WHERE cohort = ? AND since <= ? ORDER BY since DESC LIMIT 1"
_LAST = (
    "SELECT {} FROM messages m JOIN turns t ON t.id = m.turn_id WHERE m.session_id = s.id AND m.agent = '' "
    "AND t.tenant_id = s.tenant_id AND t.user_id = s.user_id {} ORDER BY m.rowid DESC LIMIT 1"
)
"""The newest turn by the order in which turns ended: a clock may be set back."""
_WITH_END = "AND t.status <> 'interrupted'"
_ROUTED = "AND (t.invoked <> '[]' OR t.status IN ('failed', 'deadline', 'cancelled'))"
_OPEN = f"""SELECT json_group_array(DISTINCT agent) FROM messages WHERE turn_id = ({_LAST.format("t.id", _ROUTED)})
AND agent <> '' AND text = '{UNANSWERED}'"""
_LINES = """FROM messages WHERE session_id = :session AND agent = :agent
AND (:since IS NULL OR rowid > (SELECT coalesce(max(rowid), 0) FROM messages WHERE turn_id = :since))
AND (:tenant IS NULL OR EXISTS (SELECT 1 FROM turns WHERE id = turn_id AND tenant_id = :tenant AND user_id = :user))
ORDER BY rowid DESC LIMIT :limit"""
"""The newest lines of one reader: what a prompt is fed, and the window of a session."""
HISTORY = f"SELECT turn_id, role, text, agent {_LINES}"
OLDEST_FIRST = HISTORY.replace("DESC", "ASC")
WINDOW = f"""SELECT turn_id, position, role, line.text, started_at, coalesce(seconds, 0),
iif(role = 'assistant' AND instr(log, '"kind":"component"'), log, '[]')
FROM (SELECT *, rowid AS place {_LINES}) line JOIN turns ON id = turn_id LEFT JOIN logs USING (number) ORDER BY place"""
LEAVE_QUESTIONS = f"""INSERT INTO messages SELECT id, column1, session_id, '', column2, coalesce(column3, message)
FROM turns, (VALUES (0, 'user', NULL), (1, 'assistant', '{UNANSWERED}'))
WHERE {RUNNING} AND owner = ? AND NOT EXISTS (SELECT 1 FROM messages WHERE turn_id = id) ORDER BY number, column1"""
"""What is left of turns whose process died: their questions, marked as open; one that had paused has its lines."""
RECALL_SESSION = f"""SELECT s.*, ({_LAST.format("t.invoked", _WITH_END)}),
({_LAST.format("t.invoked", _ROUTED)}), ({_OPEN}),
(SELECT json_group_object(name, json_array(value, at)) FROM notes WHERE session_id = s.id)
FROM sessions s WHERE s.id = ?"""
READ = 2_000_000
"""Characters of logs that are read for what a session was shown, the newest first: the loop waits for that."""
MOST_SHOWN = 40
"""Components of one turn that can be referred to."""
SHOWN = f"""SELECT id, log FROM (SELECT own, place, sum(size) OVER (ORDER BY place DESC) AS size FROM
  (SELECT t.id AS own, length(CAST(log AS BLOB)) AS size, m.rowid AS place FROM messages m JOIN
  turns t ON t.id = m.turn_id
  JOIN logs USING (number) WHERE m.session_id = :session AND m.agent = '' AND m.role = 'user'
  AND (:tenant IS NULL OR t.tenant_id = :tenant AND t.user_id = :user) ORDER BY m.rowid DESC LIMIT :turns))
JOIN turns ON id = own JOIN logs USING (number) WHERE size <= {READ} AND instr(log,
'"kind":"component"') ORDER BY place"""


def row_of(turn: TurnRecord) -> list[Any]:
    """Returns the values of a turn in the order of COLUMNS."""
    # A turn that begins has called nobody and measured nothing: that needs no encoder.
    invoked = _json_of(turn.invoked) if turn.invoked else "[]"
    failed = _json_of(turn.failed) if turn.failed else "[]"
    measures = _BARE if turn.measures is _UNMEASURED else _json_of(turn.measures)
    return [*_plain_values(vars(turn)), invoked, failed, measures]


def plain(row: Sequence[Any]) -> list[Any]:
    """The same without the halves of surrogate pairs, which SQLite refuses."""
    rows: list[Any] = []
    for value in row:
        rows.append(value.encode("utf-8", "replace").decode() if isinstance(value, str) else value)
    return rows


def log_of(events: Sequence[Event]) -> str:
    """A turn's events as a JSON list, one odd payload or not.

    orjson writes it in a sixth of pydantic's time; what it refuses, or would word in another way, pydantic words.
    """
    try:
        return orjson.dumps(events, default=_fields, option=_AS_PYDANTIC).decode()
    except orjson.JSONEncodeError:
        pass
    try:
        return _log.dump_json(list(events), fallback=str).decode()
    except PydanticSerializationError:  # half of a surrogate pair, or raw bytes
        return _dump_leniently(_log.dump_python(list(events)))


def record_of(row: Sequence[Any]) -> TurnRecord:
    """The turn of a row of COLUMNS."""
    fields = dict(zip(COLUMNS, row, strict=True))
    return TurnRecord(**fields | {name: json.loads(fields[name]) for name in _AS_JSON})


def events_of(log: str) -> list[Event]:
    """The events of such a list."""
    return _log.validate_json(log)


def shown_in(turn_id: str, log: str) -> list[ShownComponent]:
    """The components of a turn in the order they were shown; where an agent chose by render_* calls, those it chose."""
    events = orjson.loads(log)
    spans: set[Any] = set()
    for e in events:
        if e["body"]["kind"] == "tool_started" and e["body"]["tool"].startswith("render_"):
            spans.add(e["span_id"])
    parts: list[tuple[bool, Any]] = []
    for event in events:
        if event["body"]["kind"] == "component":
            parts.append((event["span_id"] in spans, event["body"]))
    choosy: set[Any] = set()
    for chosen, body in parts:
        if chosen:
            choosy.add(body["agent"])
    places: Counter[str] = Counter()
    components: list[ShownComponent] = []
    for body in [body for chosen, body in parts if chosen or body["agent"] not in choosy][
        :MOST_SHOWN
    ]:
        kind = body["type"]
        payload = body["payload"]
        places[kind] += 1
        title = str(payload.get("title") or payload.get("name") or "")
        place: dict[str, Any] = {
            "turn_id": turn_id,
            "agent": body["agent"],
            "type": kind,
            "position": places[kind],
        }
        components.append(
            ShownComponent(**place, id=str(payload.get("id") or ""), title=title, payload=payload)
        )
    return components


def _json_of(value: Measures | Sequence[str]) -> str:
    try:
        return orjson.dumps(value, default=_fields, option=_AS_PYDANTIC).decode()
    except orjson.JSONEncodeError:
        return _dump_leniently(value.model_dump() if isinstance(value, Measures) else value)


def _dump_leniently(value: Any) -> str:
    text = json.dumps(value, default=str, skipkeys=True, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace").decode()


def names_in(text: str) -> tuple[str, ...]:
    """The names of a JSON list. Raises ValueError for what is none."""
    return _names.validate_json(text)


def notes_in(text: str) -> dict[str, Note]:
    """The notes of a session by their names. Raises ValueError or TypeError for what is none."""
    return {name: note_of(row) for name, row in json.loads(text).items()}


def note_of(row: Sequence[Any]) -> Note:
    """A note's value and time. Raises ValueError or TypeError for what is none."""
    value, at = row
    return Note(value=value, at=at)


def readable(read: Callable[[Any], T], row: Any, row_id: str, kind: str = "turn") -> T | None:
    """What a row holds; None, and a line in the log, for one that somebody else wrote: no list breaks of it."""
    try:
        return read(row)
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        log.error("%s %s in the store cannot be read: %s", kind, row_id, describe_error(error))
        return None
