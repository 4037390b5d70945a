"""The embedded store: one SQLite file that survives kill -9 and answers plain SQL (tables in docs/traces.md)."""

import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from kit.core.context import Principal, Session
from kit.core.errors import SessionError, StoreError
from kit.core.event import Event
from kit.core.record import Feedback, Message, Note, Recalled, Shown, TurnRecord
from kit.stores.owner import Owner
from kit.stores.tables import APPLICATION, SCHEMA, TABLES

OLDEST = (3, 38, 0)
"""The first SQLite with the `->>` operator."""
_COLUMNS = tuple(TurnRecord.model_fields)
_TURN = f"""INSERT INTO turns ({", ".join(_COLUMNS)}, owner)
SELECT {", ".join(f"json_extract(?1, '$.{name}')" for name in _COLUMNS)}, ?2 WHERE true
ON CONFLICT (id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in (*_COLUMNS, "owner"))}"""
_EVENTS = """INSERT OR REPLACE INTO events SELECT ?1, value ->> 'seq', value ->> 'at', value ->> '$.body.kind',
value ->> 'span_id', value ->> 'parent_span_id', value FROM json_each(?2)"""
_MESSAGES = """INSERT OR REPLACE INTO messages SELECT ?1, key, ?2, value ->> 'agent', value ->> 'role', value ->> 'text'
FROM json_each(?3)"""
_NOTE = "INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?)"
_LAST = (
    "SELECT invoked FROM turns WHERE session_id = s.id AND status <> 'running' {} ORDER BY started_at DESC, rowid DESC LIMIT 1"
)
_RECALL = f"""SELECT s.*, ({_LAST.format("")}), ({_LAST.format("AND invoked <> '[]'")}),
(SELECT json_group_object(name, json_array(value, at)) FROM notes WHERE session_id = s.id) FROM sessions s WHERE s.id = ?"""
_SHOWN = """SELECT c.turn_id, c.event ->> '$.body.agent', c.event ->> '$.body.type',
coalesce(c.event ->> '$.body.payload.id', ''),
coalesce(c.event ->> '$.body.payload.title', c.event ->> '$.body.payload.name', ''),
coalesce(s.event ->> '$.body.tool', '')
FROM events c LEFT JOIN events s ON s.turn_id = c.turn_id AND s.span_id = c.span_id AND s.kind = 'tool_started'
WHERE c.kind = 'component' AND c.turn_id = (
  SELECT t.id FROM turns t WHERE t.session_id = ? AND EXISTS (SELECT 1 FROM events WHERE turn_id = t.id AND kind = 'component')
  ORDER BY t.started_at DESC, t.rowid DESC LIMIT 1) ORDER BY c.seq"""

_turn = TypeAdapter(TurnRecord)
_events = TypeAdapter(list[Event])
_messages = TypeAdapter(list[Message])


class SqliteStore:
    """The Store protocol over one SQLite file, or `:memory:`; safe to call from several threads and processes.

    Writing goes in as JSON and is taken apart by SQLite: one statement per table, whatever the number of events.
    Raises StoreError, with a sentence that says what to do, when the file cannot be opened, read or written.
    """

    def __init__(self, path: Path | str):
        self.path = str(path)
        if sqlite3.sqlite_version_info < OLDEST:
            raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old for the store: use a Python built with 3.38 or newer")
        self._lock = threading.RLock()
        self._owner = Owner(self.path)
        try:
            self._db = sqlite3.connect(self.path, timeout=5.0, isolation_level=None, check_same_thread=False)
            try:
                self._prepare()
                self.mark_interrupted()
            except BaseException:
                self.close()
                raise
        except sqlite3.Error as error:
            raise StoreError(self._advice(error)) from error

    def _prepare(self) -> None:
        self._is_current()  # before anything is written: another program's file stays as it is
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("PRAGMA journal_mode = WAL")
        with self._commit() as db:
            if not self._is_current():
                there = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
                for statement in TABLES.strip().split(";\n"):
                    if statement.split()[2] not in there:
                        db.execute(statement)
                db.execute(f"PRAGMA application_id = {APPLICATION}")
                db.execute(f"PRAGMA user_version = {SCHEMA}")
            if "measures" not in {row[1] for row in db.execute("PRAGMA table_info(turns)")}:  # a file of before it was kept
                db.execute("ALTER TABLE turns ADD COLUMN measures TEXT NOT NULL DEFAULT '{}'")
            self._owner.live()

    def _is_current(self) -> bool:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        if application == APPLICATION and version > SCHEMA:
            raise StoreError(
                f"{self.path} was written by a newer version of the kit (schema {version}, this one knows {SCHEMA}): "
                "update the kit, or choose another file."
            )
        if application != APPLICATION and (application or self._db.execute("SELECT 1 FROM sqlite_master").fetchone()):
            raise StoreError(f"{self.path} is a database of another program: choose another file for the store.")
        return application == APPLICATION and version == SCHEMA

    def _advice(self, error: sqlite3.Error) -> str:
        folder = Path(self.path).absolute().parent
        problem = f"the store {self.path} cannot be used ({error}): "
        if not folder.is_dir():
            return problem + f"create the folder {folder}, or choose another file."
        if isinstance(error, sqlite3.ProgrammingError):
            return problem + "open it again."
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:
            case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
                return problem + "move it away, or choose another file."
            case sqlite3.SQLITE_BUSY:
                return problem + "another process did not finish writing to it in time; try again, or stop that process."
            case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
                return problem + f"make room on the disk that holds {folder}."
            case _:
                return problem + f"give this user write permission on it and on the folder {folder}, or choose another file."

    def mark_interrupted(self) -> int:
        """Gives turns whose process died the status `interrupted`; returns how many. Called on opening.

        A turn that a live process runs, this one or another, is left alone.
        """
        if self.path == ":memory:":
            return 0
        with self._commit() as db:
            running = {row[0] for row in db.execute("SELECT DISTINCT owner FROM turns WHERE status = 'running'")}
            dead = [owner for owner in running | self._owner.others() if self._owner.dead(owner)]
            sql = "UPDATE turns SET status = 'interrupted' WHERE status = 'running' AND owner = ?"
            return sum(db.execute(sql, (owner,)).rowcount for owner in dead)

    @contextmanager
    def _commit(self) -> Generator[sqlite3.Connection]:
        try:
            with self._lock:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield self._db
                    self._db.execute("COMMIT")
                finally:
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise StoreError(self._advice(error)) from error

    def _read(self, sql: str, *values: Any) -> list[Any]:
        try:
            with self._lock:
                return self._db.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(self._advice(error)) from error

    def open_session(self, session: Session) -> None:
        """Writes the session if it is new; leaves an existing one alone. Raises SessionError when it is another principal's."""
        who = session.principal
        row = (session.id, who.tenant_id, who.user_id, session.locale, session.location)
        with self._commit() as db:
            if not db.execute("INSERT OR IGNORE INTO sessions VALUES (?, ?, ?, ?, ?)", row).rowcount:
                owner = db.execute("SELECT tenant_id, user_id FROM sessions WHERE id = ?", row[:1]).fetchone()
                if owner != row[1:3]:
                    raise SessionError(f"session {session.id!r} belongs to someone else; start a new one under another id")

    def session(self, session_id: str) -> Session | None:
        """The session, or None when it was never opened."""
        for key, tenant, user, locale, location in self._read("SELECT * FROM sessions WHERE id = ?", session_id):
            return Session(id=key, principal=Principal(tenant_id=tenant, user_id=user), locale=locale, location=location)
        return None

    def recall(self, session_id: str) -> Recalled | None:
        """The session, who was called last, and its notes, in one query; None when it was never opened."""
        for key, tenant, user, locale, location, last, routed, notes in self._read(_RECALL, session_id):
            session = Session(id=key, principal=Principal(tenant_id=tenant, user_id=user), locale=locale, location=location)
            kept = {name: Note(value=value, at=at) for name, (value, at) in json.loads(notes).items()}
            return Recalled(
                session=session, in_play=tuple(json.loads(last or "[]")), routed=tuple(json.loads(routed or "[]")), notes=kept
            )
        return None

    def begin_turn(self, turn: TurnRecord) -> None:
        """Commits at once: an accepted turn survives a killed process."""
        with self._commit() as db:
            db.execute(_TURN, (_json(_turn, turn), self._owner.id))

    def end_turn(
        self, turn: TurnRecord, events: Sequence[Event], messages: Sequence[Message], notes: Mapping[str, Note] | None = None
    ) -> None:
        """Writes the rollup, every event, the new narration and what the episode shall remember in one commit.

        A second call for the same turn replaces it.
        """
        with self._commit() as db:
            db.execute(_TURN, (_json(_turn, turn), self._owner.id))
            db.execute(_EVENTS, (turn.id, _json(_events, list(events))))
            db.execute(_MESSAGES, (turn.id, turn.session_id, _json(_messages, list(messages))))
            for name, note in (notes or {}).items():
                db.execute(_NOTE, (turn.session_id, name, note.value, note.at))

    def history(self, session_id: str, agent: str = "", limit: int = 40, since: str | None = None) -> list[Message]:
        """The newest `limit` messages of one reader of one session, oldest first; only those after the turn `since`."""
        after = "" if since is None else "AND rowid > (SELECT coalesce(max(rowid), 0) FROM messages WHERE turn_id = ?)"
        sql = f"SELECT turn_id, role, text, agent FROM messages WHERE session_id = ? AND agent = ? {after} ORDER BY rowid DESC"
        rows = self._read(f"{sql} LIMIT ?", session_id, agent, *(() if since is None else (since,)), limit)
        return [Message(turn_id=turn_id, role=role, text=text, agent=reader) for turn_id, role, text, reader in reversed(rows)]

    def note(self, session_id: str, name: str) -> Note | None:
        """One note of an episode, or None."""
        for value, at in self._read("SELECT value, at FROM notes WHERE session_id = ? AND name = ?", session_id, name):
            return Note(value=value, at=at)
        return None

    def keep_note(self, session_id: str, name: str, note: Note) -> None:
        """Writes a note; a later one of the same name replaces it."""
        with self._commit() as db:
            db.execute(_NOTE, (session_id, name, note.value, note.at))

    def shown(self, session_id: str) -> list[Shown]:
        """References to the components of the newest ended turn that showed any, in the order they were shown.

        Where an agent chose what to show by render_* calls, its other components are left out.
        """
        rows = self._read(_SHOWN, session_id)
        choosy = {agent for _, agent, _, _, _, tool in rows if tool.startswith("render_")}
        found: list[Shown] = []
        places: Counter[str] = Counter()
        for turn_id, agent, kind, key, title, tool in rows:
            if tool.startswith("render_") or agent not in choosy:
                places[kind] += 1
                found.append(Shown(turn_id=turn_id, agent=agent, type=kind, id=key, title=title, position=places[kind]))
        return found

    def turn(self, turn_id: str) -> TurnRecord | None:
        """The rollup of one turn, or None when it was never accepted."""
        found = self._read(f"SELECT {', '.join(_COLUMNS)} FROM turns WHERE id = ?", turn_id)
        return _record(found[0]) if found else None

    def turns(
        self, session_id: str | None = None, tenant_id: str | None = None, user_id: str | None = None, limit: int = 50
    ) -> list[TurnRecord]:
        """The newest turns that match, newest first."""
        asked = {"session_id": session_id, "tenant_id": tenant_id, "user_id": user_id}
        wanted = {name: value for name, value in asked.items() if value is not None}
        where = "WHERE " + " AND ".join(f"{name} = ?" for name in wanted) if wanted else ""
        sql = f"SELECT {', '.join(_COLUMNS)} FROM turns {where} ORDER BY started_at DESC, rowid DESC LIMIT ?"
        return [_record(row) for row in self._read(sql, *wanted.values(), limit)]

    def events(self, turn_id: str) -> list[Event]:
        """Every event of a turn in order; empty while it runs."""
        rows = self._read("SELECT event FROM events WHERE turn_id = ? ORDER BY seq", turn_id)
        return _events.validate_json(f"[{','.join(row[0] for row in rows)}]")

    def give_feedback(self, feedback: Feedback) -> None:
        """One thumb a turn; a later one replaces it. Raises StoreError when the turn is not stored."""
        sql = "INSERT OR REPLACE INTO feedback SELECT id, ?, ? FROM turns WHERE id = ?"
        with self._commit() as db:
            kept = db.execute(sql, (feedback.score, feedback.note, feedback.turn_id)).rowcount
        if not kept:
            raise StoreError(f"no feedback was kept: the store holds no turn {feedback.turn_id!r}; give it for a stored turn.")

    def feedback(self, turn_id: str) -> Feedback | None:
        """The thumb given on a turn, or None."""
        for score, note in self._read("SELECT score, note FROM feedback WHERE turn_id = ?", turn_id):
            return Feedback(turn_id=turn_id, score=score, note=note)
        return None

    def close(self) -> None:
        """Closes the file; a second call does nothing."""
        with self._lock:
            self._db.close()
            self._owner.end()


def _json(shape: TypeAdapter[Any], value: Any) -> str:
    """JSON of a value; what JSON cannot hold is worded, so that one odd payload never costs the turn its trace."""
    try:
        return shape.dump_json(value, fallback=str).decode()
    except PydanticSerializationError:  # half of a surrogate pair, as a broken client may send it, or raw bytes
        plain = json.dumps(shape.dump_python(value), default=str, skipkeys=True, ensure_ascii=False)
        return plain.encode("utf-8", "replace").decode()


def _record(row: Sequence[Any]) -> TurnRecord:
    fields = dict(zip(_COLUMNS, row, strict=True))
    return TurnRecord(**fields | {name: json.loads(fields[name]) for name in ("invoked", "failed", "measures")})
