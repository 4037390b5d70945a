"""The embedded store: one SQLite file that survives kill -9 and answers plain SQL (tables in docs/traces.md)."""

import json
import time
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.core.context import Operator, Principal, Reader, Session
from kit.core.errors import StoreBusy, StoreError
from kit.core.event import Event
from kit.core.record import (
    CohortPrompt,
    Feedback,
    Message,
    Note,
    SessionRecall,
    ShownComponent,
    TurnRecord,
)
from kit.core.value import builder
from kit.stores.database import MANY, Database
from kit.stores.forget import forget
from kit.stores.rollup import tally
from kit.stores.rows import (
    COLUMNS,
    HISTORY,
    INSERT_MESSAGE,
    INSERT_NOTE,
    KEEP_PROMPT,
    KEEP_RESUMED,
    OLDEST_FIRST,
    PROMPT,
    RECALL_SESSION,
    SHOWN,
    TURN,
    TURN_LOG,
    events_of,
    log_of,
    names_in,
    note_of,
    notes_in,
    plain,
    readable,
    record_of,
    row_of,
    shown_in,
)
from kit.stores.search import choices, conversations, search
from kit.stores.tally import Tally
from kit.stores.transaction import begin_turn, end_turn, open_session
from kit.stores.turn_filter import Conversation, TurnChoices, TurnFilter, TurnPage

if TYPE_CHECKING:
    from kit.stores.documents.protocol import Documents

_new_message = builder(Message)
_Row = Sequence[Any]


class SqliteStore(Database):
    """The Store protocol over one SQLite file, or `:memory:`; safe to call from several threads and processes.

    A turn is one row, its events the JSON in one column of it: writing costs the same statements whatever their number.
    Raises StoreError, with a sentence that says what to do, when the file cannot be opened, read or written.
    """

    def open_documents(self) -> "Documents":
        """The stores of documents in the same file, the same ones each time. Raises StoreError."""
        return self._documents

    @cached_property
    def _documents(self) -> "Documents":
        from kit.stores.documents.sqlite import open_documents  # loads NumPy, which few turns need

        return open_documents(self)

    def with_souls(self, session: Session) -> Session:
        """Returns a session with what the souls of its tenant and its user say; as it is while nobody has a soul."""
        if not self.has_souls:
            return session
        from kit.stores.documents.souls import (
            with_souls,
        )  # builds the documents' models, which few turns need

        return with_souls(session, self)

    def open_session(self, session: Session) -> None:
        """Writes the session if it is new; leaves an existing one alone. Raises SessionError when
        it is another principal's."""
        with self.commit() as db:
            open_session(db, session)

    def session(self, session_id: str) -> Session | None:
        """The session, or None when it was never opened."""
        for key, tenant, user, locale, location in self.read(
            "SELECT * FROM sessions WHERE id = ?", session_id
        ):
            return Session(
                id=key,
                principal=Principal(tenant_id=tenant, user_id=user),
                locale=locale,
                location=location,
            )
        return None

    def recall(self, session_id: str) -> SessionRecall | None:
        """The session, who was called last, and its notes, in one query; None when it was never opened."""
        for key, tenant, user, locale, location, last, routed, unanswered, notes in self.read(
            RECALL_SESSION, session_id
        ):
            session = Session(
                id=key,
                principal=Principal(tenant_id=tenant, user_id=user),
                locale=locale,
                location=location,
            )
            # What cannot be read is left out: the session goes on without it.
            return SessionRecall(
                session=session,
                in_play=readable(names_in, last or "[]", key, "session") or (),
                routed=readable(names_in, routed, key, "session") if routed else None,
                unanswered=readable(names_in, unanswered, key, "session") or (),
                notes=readable(notes_in, notes, key, "session") or {},
            )
        return None

    def begin_turn(
        self,
        turn: TurnRecord,
        session: Session | None = None,
        events: Sequence[Event] = (),
        *,
        wait: bool = True,
    ) -> None:
        """Commits at once: an accepted turn survives a killed process. A `session` is opened in the same commit.

        `events` is the turn's log, which grows: until the turn ends it is kept once a second.
        """
        with self.commit(wait) as db:
            begin_turn(db, (*row_of(turn), self._owner.id), session)
        if events:
            self._running[turn.id] = events

    def end_turn(
        self,
        turn: TurnRecord,
        events: Sequence[Event],
        messages: Sequence[Message],
        notes: Mapping[str, Note] | None = None,
        session: Session | None = None,
        *,
        wait: bool = True,
    ) -> None:
        """Writes the rollup, every event, the new narration and what the episode shall remember in
        one commit.

        A second call for the same turn replaces what is new in it since it began. A `session` is
        opened in the same commit.
        """
        self._running.pop(turn.id, None)
        self._ended += 1
        if self._ended == MANY and self._live_logs:
            self._live_logs.hurry()
        row = (*row_of(turn), self._owner.id)
        log = log_of(events)
        lines: list[tuple[str, int, str, str, str, str]] = []
        for place, m in enumerate(messages):
            lines.append((turn.id, place, turn.session_id, m.agent, m.role, m.text))
        if notes:
            note_rows: list[tuple[str, str, str, float]] = []
            for name, note in notes.items():
                note_rows.append((turn.session_id, name, note.value, note.at))
        else:
            note_rows = []
        try:
            self._end(row, log, lines, note_rows, session, wait)
        except UnicodeEncodeError:  # half of a surrogate pair, as a broken client may send it
            (log,) = plain([log])
            self._end(
                plain(row),
                log,
                [plain(line) for line in lines],
                [plain(note) for note in note_rows],
                session,
                wait,
            )

    def keep_log(self, turn_id: str, events: Sequence[Event]) -> None:
        """Writes the log of a running turn as it stands."""
        self._keep_logs([(log_of(list(events)), turn_id)])

    def claim_turn(self, turn_id: str) -> bool:
        """Makes a turn that is paused or interrupted run again; False where it is neither, or
        somebody else was quicker."""
        sql = "UPDATE turns SET status = 'running', owner = ? WHERE id = ? AND status IN ('paused', 'interrupted')"
        with self.commit() as db:
            if is_ours := bool(db.execute(sql, (self._owner.id, turn_id)).rowcount):
                db.execute(KEEP_RESUMED, (time.time(), turn_id))
        return is_ours

    def _end(
        self,
        row: _Row,
        log: str,
        lines: Sequence[_Row],
        notes: Sequence[_Row],
        session: Session | None,
        wait: bool,
    ) -> None:
        with self.commit(wait) as db:
            end_turn(db, row, log, session)
            db.executemany(INSERT_MESSAGE, lines)
            if notes:
                db.executemany(INSERT_NOTE, notes)

    def history(
        self,
        session_id: str,
        agent: str = "",
        limit: int = 40,
        since: str | None = None,
        who: Principal | None = None,
    ) -> list[Message]:
        """The newest `limit` messages of one reader, below 0 the oldest, in their order; only those
        after the turn `since`.

        Of the turns of `who`; None is for an operator's tools alone.
        """
        if limit > 0:
            sql = HISTORY
        else:
            sql = OLDEST_FIRST
        rows = self.read(sql, **_of(session_id, who), agent=agent, since=since, limit=abs(limit))[
            :: -1 if limit > 0 else 1
        ]
        results: list[Message] = []
        for turn, role, text, reader in rows:
            results.append(_new_message(turn_id=turn, role=role, text=text, agent=reader))
        return results

    def note(self, session_id: str, name: str) -> Note | None:
        """One note of an episode, or None."""
        rows = self.read(
            "SELECT value, at FROM notes WHERE session_id = ? AND name = ?", session_id, name
        )
        if rows:
            return readable(note_of, rows[0], session_id, "session")
        return None

    def keep_note(self, session_id: str, name: str, note: Note) -> None:
        """Writes a note; a later one of the same name replaces it."""
        with self.commit() as db:
            db.execute(INSERT_NOTE, (session_id, name, note.value, note.at))

    def shown_components(
        self, session_id: str, who: Principal | None = None, turns: int = 20
    ) -> list[ShownComponent]:
        """References to what the newest `turns` turns showed, oldest turn first, in the order shown; `who` as above.

        Where an agent chose what to show by render_* calls, its other components are left out.
        """
        rows = self.read(SHOWN, **_of(session_id, who), turns=turns)
        shown_components: list[ShownComponent] = []
        for turn_id, log in rows:
            for component in readable(partial(shown_in, turn_id), log, turn_id) or ():
                shown_components.append(component)
        return shown_components

    def keep_prompts(self, prompts: Sequence[CohortPrompt]) -> None:
        """Writes the prompts that are new, or whose tools are: what a cohort was shown before stays."""
        rows: list[dict[str, Any | str | float]] = []
        for prompt in prompts:
            rows.append({**vars(prompt), "tools": json.dumps(prompt.tools), "since": time.time()})
        with self.commit() as db:
            db.executemany(KEEP_PROMPT, rows)

    def prompt(self, cohort: str, at: float) -> CohortPrompt | None:
        """A cohort's prompt as it was at a moment, in seconds since the epoch; None where none was kept by then."""
        for name, agent, text, tools in self.read(PROMPT, cohort, at):
            return CohortPrompt(cohort=name, agent=agent, text=text, tools=json.loads(tools))
        return None

    def turn(self, turn_id: str, reader: Reader) -> TurnRecord | None:
        """The rollup of one turn; None when it was never accepted, or is not the reader's."""
        rows = self.read(TURN, **_read_by(reader), turn=turn_id)
        if rows:
            return readable(record_of, rows[0], turn_id)
        return None

    def turns(
        self,
        session_id: str | None = None,
        tenant_id: str | None = None,
        user_id: str | None = None,
        limit: int = 50,
    ) -> list[TurnRecord]:
        """The newest turns that match, newest first."""
        filters = {"session_id": session_id, "tenant_id": tenant_id, "user_id": user_id}
        conditions: dict[str, str] = {}
        for name, value in filters.items():
            if value is not None:
                conditions[name] = value
        # a session has few turns, and its user may have all of them
        if session_id is None:
            plus = ""
        else:
            plus = "+"
        where = (
            " AND ".join(f"{'' if name == 'session_id' else plus}{name} = ?" for name in conditions)
            or "true"
        )
        sql = f"SELECT {', '.join(COLUMNS)} FROM turns WHERE {where} ORDER BY started_at DESC, number DESC LIMIT ?"
        records = (
            readable(record_of, row, row[0]) for row in self.read(sql, *conditions.values(), limit)
        )
        turn_records: list[TurnRecord] = []
        for record in records:
            if record is not None:
                turn_records.append(record)
        return turn_records

    def search(self, who: Principal, by: TurnFilter, limit: int = 50, offset: int = 0) -> TurnPage:
        """Some of the turns of a principal that pass a filter, newest first, and how many do."""
        return self._read_apart(partial(search, who=who, by=by, limit=limit, offset=offset))

    def choices(self, who: Principal) -> TurnChoices:
        """What the turns of a principal can be chosen by."""
        return self._read_apart(partial(choices, who=who))

    def conversations(
        self, who: Principal, limit: int = 50, offset: int = 0
    ) -> tuple[list[Conversation], int]:
        """Some of the conversations of a principal, the newest first, and how many there are."""
        return self._read_apart(partial(conversations, who=who, limit=limit, offset=offset))

    def tally(self, tenant_id: str | None = None, since: float | None = None) -> Tally:
        """What the turns of one tenant or all add up to, begun at `since` (seconds since the epoch) or later."""
        self.sum_up()
        return self._read_apart(partial(tally, tenant_id=tenant_id, since=since))

    def events(self, turn_id: str, reader: Reader) -> list[Event]:
        """Every event of a turn in order; of one that runs, those kept so far; none of a turn that
        is not the reader's."""
        rows = self.read(TURN_LOG, **_read_by(reader), turn=turn_id)
        if not rows:
            return []
        return readable(events_of, rows[0][0], turn_id) or []

    def give_feedback(self, feedback: Feedback) -> None:
        """One thumb a turn; a later one replaces it. Raises StoreError when the turn is not stored."""
        sql = "INSERT OR REPLACE INTO feedback SELECT id, ?, ? FROM turns WHERE id = ?"
        with self.commit() as db:
            count = db.execute(sql, (feedback.score, feedback.note, feedback.turn_id)).rowcount
        if not count:
            raise StoreError(
                f"no feedback was kept: the store holds no turn {feedback.turn_id!r}; give it for a stored turn."
            )

    def feedback(self, turn_id: str) -> Feedback | None:
        """The thumb given on a turn, or None."""
        for score, note in self.read("SELECT score, note FROM feedback WHERE turn_id = ?", turn_id):
            return Feedback(turn_id=turn_id, score=score, note=note)
        return None

    def forget(self, who: Principal) -> dict[str, int]:
        """Removes a principal's rows, overwritten with zeros in the file and its log; returns how many of each table.

        Raises StoreBusy while a turn of theirs runs, or while somebody reads what the log still holds.
        """
        with self.commit() as db:
            db.execute("PRAGMA secure_delete = ON")
            counts = forget(db, who)
        if self.read("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]:
            raise StoreBusy(
                f"{who.user_id} is removed, but {self.path}-wal is being read and still holds them; try this again"
            )
        return counts

    def feedbacks(self, score: int) -> list[Feedback]:
        """Every thumb of that score, in the order of their turns."""
        sql = (
            "SELECT turn_id, score, note FROM feedback JOIN turns ON id = turn_id WHERE score "
            "= ? ORDER BY started_at, turn_id"
        )
        return [
            Feedback(turn_id=turn_id, score=score, note=note)
            for turn_id, score, note in self.read(sql, score)
        ]


def _read_by(reader: Reader) -> dict[str, str | None]:
    """Returns the values by which a query is held to what its reader may see."""
    if isinstance(reader, Operator):
        return {"tenant": None, "user": None}
    return {"tenant": reader.tenant_id, "user": reader.user_id}


def _of(session_id: str, who: Principal | None) -> dict[str, Any]:
    return {"session": session_id, "tenant": who and who.tenant_id, "user": who and who.user_id}


def open_store(path: str, retention_days: float | None = None) -> SqliteStore:
    """The store at a path, its folder made where it is missing; documents' events go after so many
    days, None keeps them.

    Raises StoreError.
    """
    if path != ":memory:":
        folder = Path(path).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"the store {path} needs {folder}, which cannot be made: {error.strerror}; set KIT_STORE"
            ) from error
    return SqliteStore(path, retention_days)
