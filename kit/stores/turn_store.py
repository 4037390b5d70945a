"""What a store keeps and gives of turns, on any database (tables in docs/traces.md)."""

import json
import math
import time
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert

from kit.core.context import OPERATOR, Principal, Reader, Recollection, Session, SessionKey
from kit.core.errors import SessionError, StoreError
from kit.core.event import Event
from kit.core.record import (
    LINES,
    UNANSWERED,
    CohortPrompt,
    Feedback,
    Message,
    Note,
    SessionRecall,
    ShownComponent,
    TurnRecord,
)
from kit.core.value import builder
from kit.stores.engines.connection import StoreConnection
from kit.stores.engines.database import Database
from kit.stores.forget import forget
from kit.stores.queries import (
    KEEP_FEEDBACK,
    KEEP_RESUMED,
    NEWEST_MESSAGES,
    OLDEST_MESSAGES,
    RECALL_SESSION,
    SHOWN,
)
from kit.stores.rollup import tally
from kit.stores.rows import (
    events_of,
    log_of,
    names_of,
    notes_of,
    packed,
    readable,
    reader_values,
    records_of,
    row_of,
    session_of,
    statuses_of,
    unpacked,
    value_of,
    without_surrogates,
)
from kit.stores.search import choices, conversations, search
from kit.stores.shown import shown_in
from kit.stores.statements import (
    BEGIN_TURN,
    BEGIN_TURN_AGAIN,
    CLAIM_TURN,
    DROP_LOG,
    DROP_MESSAGES,
    END_TURN,
    FEEDBACK_OF_TURN,
    FEEDBACKS,
    INSERT_MESSAGE,
    INSERT_NOTE,
    INSERT_SESSION,
    KEEP_LOG,
    NOTE,
    PROMPT,
    SESSION,
    TURN,
    TURN_LOG,
    TURNS_BEFORE,
    newest_turns,
)
from kit.stores.tables import PROMPTS
from kit.stores.tally import Tally
from kit.stores.turn_filter import Conversation, TurnChoices, TurnFilter, TurnPage

if TYPE_CHECKING:
    from kit.stores.documents.protocol import Documents
    from kit.stores.opensearch.documents import OpenSearchDocuments

_new_message = builder(Message)
MANY = 300
"""Turns after which what they leave is tended at once."""
ALL = 1 << 62
"""Rows that no store has."""
SHOWN_BYTES = 2_000_000
"""Bytes of logs that are read for what a session was shown, the newest first: the loop waits for that."""


class TurnStore(Database):
    """The store of turns over a database; safe to call from several threads and processes. Calls are synchronous and
    short; a write waits for other writers, or with `wait=False` raises StoreBusy at once, for a loop that must not
    stand still.

    A turn is one row, its events the JSON in one column of it: writing costs the same statements whatever their number.
    Raises StoreError, with a sentence that says what to do, when the database cannot be opened, read or written.
    """

    backend: "OpenSearchDocuments | None" = None
    """Where documents are that are not in the same database."""
    _ended = 0
    """Turns that have ended since what they leave was last tended."""

    def keep_documents_in(self, backend: "OpenSearchDocuments") -> None:
        """Has documents kept elsewhere from now on; the backend is closed with the store."""
        self.backend = backend
        # Whether anybody has a soul is not asked for again and again over a network: each turn reads its own.
        self.has_souls = True
        self._sweep_at = 0.0

    def open_documents(self) -> "Documents":
        """The stores of documents in the same database, or where they are kept instead, the same ones each time.

        Raises StoreError.
        """
        return self._documents

    @cached_property
    def _documents(self) -> "Documents":
        # Loads NumPy, which few turns need.
        from kit.stores.documents.sql import open_documents, open_sessions

        if self.backend is not None:
            return self.backend.open(open_sessions(self))
        return open_documents(self)

    def sweep_documents(self, now: float, retention: float) -> None:
        if self.backend is None:
            super().sweep_documents(now, retention)
        else:
            self.backend.sweep(now, retention)

    def close(self) -> None:
        """Closes the database, and where documents are; a second call does nothing."""
        super().close()
        if self.backend is not None:
            self.backend.close()

    def with_souls(self, session: Session) -> Session:
        """Returns a session with what the souls of its tenant and its user say; as it is while nobody has a soul."""
        if not self.has_souls:
            return session
        # Builds the documents' models, which few turns need.
        from kit.stores.documents.souls import read_souls, with_souls

        if self.backend is not None:
            tenant, user = self.backend.souls(session.principal)
        else:
            tenant, user = read_souls(self, session.principal)
        return with_souls(session, tenant, user)

    def open_session(self, session: Session) -> None:
        """Writes the session if it is new; leaves an existing one alone. Raises SessionError when
        it is another user's of the same tenant."""
        with self.commit() as db:
            _open_session(db, session)

    def session(self, key: SessionKey) -> Session | None:
        """The session, or None when it was never opened."""
        for row in self.read(SESSION, key._asdict()):
            return session_of(row)
        return None

    def recall(self, key: SessionKey) -> SessionRecall | None:
        """The session, who was called last, and its notes, in one query; None when it was never opened."""
        query_values: dict[str, Any] = {**key._asdict(), "unanswered": UNANSWERED, "newest": LINES}
        rows = self.read(RECALL_SESSION, query_values)
        if not rows:
            return None
        *session, in_play, routed, unanswered, notes, unended = rows[0]
        beside: list[str] = []
        has_cut_off = False
        # Most sessions have none.
        if unended and unended != "{}":
            statuses = readable(statuses_of, unended, key, "session") or {}
            beside = [turn_id for turn_id, status in statuses.items() if status == "running"]
            has_cut_off = "interrupted" in statuses.values()
        for turn_id, session_key in self.at_work.items():
            if session_key == key and turn_id not in beside:
                beside.append(turn_id)
        # What cannot be read is left out: the session goes on without it.
        return SessionRecall(
            session=session_of(session),
            recollection=Recollection(
                in_play=readable(names_of, in_play or "[]", key, "session") or (),
                routed=readable(names_of, routed, key, "session") if routed else None,
                unanswered=readable(names_of, unanswered or "[]", key, "session") or (),
                beside=tuple(beside),
            ),
            notes=readable(notes_of, notes or "{}", key, "session") or {},
            has_cut_off=has_cut_off,
        )

    def begin_turn(
        self,
        turn: TurnRecord,
        session: Session | None = None,
        events: Sequence[Event] = (),
        *,
        wait: bool = True,
    ) -> None:
        """Commits at once: an accepted turn survives a killed process. A `session` is opened in the same commit.

        `events` is the turn's log, which grows: until the turn ends it is kept twice a second.
        """
        with self.commit(wait) as db:
            if session is not None:
                _open_session(db, session)
            row = row_of(turn, self.owner)
            if not db.run(BEGIN_TURN, row).rowcount:
                # The turn begins again, and then has no log.
                db.execute(DROP_LOG, {"turn": turn.id, "by": self.owner})
                _replace_turn(db, BEGIN_TURN_AGAIN, row)
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
        row = row_of(turn, self.owner)
        log = log_of(events)
        key = {"tenant_id": turn.tenant_id, "session_id": turn.session_id}
        lines: list[dict[str, Any]] = []
        turn_key = {**key, "turn_id": turn.id}
        for position, message in enumerate(messages):
            lines.append({**message.values_by_field, **turn_key, "position": position})
        note_rows: list[dict[str, Any]] = []
        for name, note in (notes or {}).items():
            note_rows.append({**key, "name": name, **vars(note)})
        try:
            self._end(row, log, lines, note_rows, session, wait)
        except UnicodeEncodeError:  # half of a surrogate pair, as a broken client may send it
            row = without_surrogates(row)
            lines = list(map(without_surrogates, lines))
            note_rows = list(map(without_surrogates, note_rows))
            self._end(row, log, lines, note_rows, session, wait)

    def keep_log(self, turn_id: str, events: Sequence[Event]) -> None:
        """Writes the log of a running turn as it stands. Raises StoreError for one that another process
        has taken over since."""
        if not self._keep_logs([(log_of(list(events)), turn_id)]):
            raise StoreError(f"turn {turn_id!r} does not run here: another process has taken it")

    def claim_turn(self, turn_id: str) -> bool:
        """Makes a turn that is paused or interrupted run again; False where it is neither, or
        somebody else was quicker."""
        with self.commit() as db:
            is_ours = db.execute(CLAIM_TURN, {"turn": turn_id, "by": self.owner}).rowcount > 0
            if is_ours:
                db.execute(KEEP_RESUMED, {"turn": turn_id, "at": time.time()})
        return is_ours

    def _end(
        self,
        row: Mapping[str, Any],
        log: bytes,
        lines: Sequence[Mapping[str, Any]],
        notes: Sequence[Mapping[str, Any]],
        session: Session | None,
        wait: bool,
    ) -> None:
        data, size = packed(log)
        with self.commit(wait) as db:
            if session is not None:
                _open_session(db, session)
            number = _replace_turn(db, END_TURN, row)
            db.run(KEEP_LOG, {"number": number, "log": data, "size": size})
            db.run(DROP_MESSAGES, {"turn": row["id"], "count": len(lines)})
            db.execute_many(INSERT_MESSAGE, lines)
            if notes:
                db.execute_many(INSERT_NOTE, notes)

    def history(
        self,
        key: SessionKey,
        agent: str = "",
        limit: int = 40,
        since: str | None = None,
        reader: Reader = OPERATOR,
    ) -> list[Message]:
        """The newest `limit` messages of one reader, below 0 the oldest, in their order; only those
        after the turn `since`.

        Of the turns of the `reader`.
        """
        values = {
            **reader_values(reader),
            **key._asdict(),
            "agent": agent,
            "since": since,
            "limit": abs(limit),
        }
        rows = self.read(NEWEST_MESSAGES if limit > 0 else OLDEST_MESSAGES, values)
        if limit > 0:
            rows.reverse()
        messages: list[Message] = []
        for turn_id, role, text, agent in rows:
            messages.append(_new_message(turn_id=turn_id, role=role, text=text, agent=agent))
        return messages

    def note(self, key: SessionKey, name: str) -> Note | None:
        """One note of an episode, or None."""
        for row in self.read(NOTE, {**key._asdict(), "name": name}):
            return readable(partial(value_of, Note), row, key, "session")
        return None

    def keep_note(self, key: SessionKey, name: str, note: Note) -> None:
        """Writes a note; a later one of the same name replaces it."""
        with self.commit() as db:
            db.execute(INSERT_NOTE, {**key._asdict(), "name": name, **vars(note)})

    def shown_components(
        self, key: SessionKey, reader: Reader = OPERATOR, turns: int = 20
    ) -> list[ShownComponent]:
        """References to what the newest `turns` turns showed, oldest turn first, in the order shown,
        of the turns of the `reader`.

        Where an agent chose what to show by render_* calls, its other components are left out.
        """
        values: dict[str, Any] = {**reader_values(reader), **key._asdict()}
        values |= {"turns": turns, "most": SHOWN_BYTES}
        components: list[ShownComponent] = []
        for turn_id, log, size in self.read(SHOWN, values):
            components += readable(partial(shown_in, turn_id), unpacked(log, size), turn_id) or ()
        return components

    def keep_prompts(self, prompts: Sequence[CohortPrompt]) -> None:
        """Writes the prompts that are new, or whose tools are: what a cohort was shown before stays."""
        with self.commit() as db:
            for prompt in prompts:
                row = {**vars(prompt), "tools": json.dumps(prompt.tools), "since": time.time()}
                newest = db.execute(PROMPT, {"cohort": prompt.cohort, "at": math.inf}).first()
                if newest is None or newest.tools != row["tools"]:
                    db.execute(insert(PROMPTS), row)

    def prompt(self, cohort: str, at: float) -> CohortPrompt | None:
        """A cohort's prompt as it was at a moment, in seconds since the epoch; None where none was kept by then."""
        for row in self.read(PROMPT, {"cohort": cohort, "at": at}):
            return value_of(CohortPrompt, row)
        return None

    def turn(self, turn_id: str, reader: Reader) -> TurnRecord | None:
        """The rollup of one turn; None when it was never accepted, or is not the reader's."""
        for row in self.read(TURN, {"turn": turn_id, **reader_values(reader)}):
            return readable(partial(value_of, TurnRecord), row, turn_id)
        return None

    def turns(
        self,
        session_id: str | None = None,
        tenant_id: str | None = None,
        user_id: str | None = None,
        limit: int = 50,
    ) -> list[TurnRecord]:
        """The newest turns that match, newest first; all of them with a limit below 0."""
        filters = {"session_id": session_id, "tenant_id": tenant_id, "user_id": user_id}
        values = {name: value for name, value in filters.items() if value is not None}
        query = newest_turns(*values)
        rows = self.read(query, {**values, "limit": limit if limit >= 0 else ALL})
        return list(records_of(rows))

    def turns_before(self, turn: TurnRecord) -> list[TurnRecord]:
        """The turns of a session that were accepted before one of them, the first one first."""
        names = ("session_id", "tenant_id", "user_id")
        values = {name: getattr(turn, name) for name in names}
        return list(records_of(self.read(TURNS_BEFORE, {**values, "turn": turn.id})))

    def search(
        self, principal: Principal, by: TurnFilter, limit: int = 50, offset: int = 0
    ) -> TurnPage:
        """Some of the turns of a principal that pass a filter, newest first, and how many do."""
        return self.read_apart(
            partial(search, principal=principal, by=by, limit=limit, offset=offset)
        )

    def choices(self, principal: Principal) -> TurnChoices:
        """What the turns of a principal can be chosen by."""
        return self.read_apart(partial(choices, principal=principal))

    def conversations(
        self, principal: Principal, limit: int = 50, offset: int = 0
    ) -> tuple[list[Conversation], int]:
        """Some of the conversations of a principal, the newest first, and how many there are."""
        return self.read_apart(
            partial(conversations, principal=principal, limit=limit, offset=offset)
        )

    def tally(self, tenant_id: str | None = None, since: float | None = None) -> Tally:
        """What the turns of one tenant or all add up to, begun at `since` (seconds since the epoch) or later."""
        self.sum_up()
        return self.read_apart(partial(tally, tenant_id=tenant_id, since=since))

    def events(self, turn_id: str, reader: Reader) -> list[Event]:
        """Every event of a turn in order; of one that runs, those kept so far; none of a turn that
        is not the reader's."""
        for log, size in self.read(TURN_LOG, {"turn": turn_id, **reader_values(reader)}):
            return readable(events_of, unpacked(log, size), turn_id) or []
        return []

    def give_feedback(self, feedback: Feedback) -> None:
        """One thumb a turn; a later one replaces it. Raises StoreError when the turn is not stored."""
        with self.commit() as db:
            count = db.execute(KEEP_FEEDBACK, vars(feedback)).rowcount
        if not count:
            raise StoreError(
                f"no feedback was kept: the store holds no turn {feedback.turn_id!r}; give it for a stored turn."
            )

    def feedback(self, turn_id: str) -> Feedback | None:
        """The thumb given on a turn, or None."""
        for row in self.read(FEEDBACK_OF_TURN, {"turn": turn_id}):
            return value_of(Feedback, row)
        return None

    def forget(self, principal: Principal) -> dict[str, int]:
        """Removes a principal's rows; returns how many of each table. Raises StoreBusy while a turn of theirs runs."""
        with self.commit() as db:
            return self._forget(db, principal)

    def _forget(self, db: StoreConnection, principal: Principal) -> dict[str, int]:
        counts = forget(db, principal)
        if self.backend is not None:
            # Within the commit: where this fails the turns stay as well, and the command says so.
            for kind, count in self.backend.forget(principal).items():
                counts[kind] = counts.get(kind, 0) + count
        return counts

    def feedbacks(self, score: int) -> list[Feedback]:
        """Every thumb of that score, in the order of their turns."""
        rows = self.read(FEEDBACKS, {"score": score})
        return [value_of(Feedback, row) for row in rows]


def _open_session(db: StoreConnection, session: Session) -> None:
    """Writes the session if it is new. Raises SessionError when it is another user's of the same tenant."""
    row = {**vars(session), **vars(session.principal)}
    if db.run(INSERT_SESSION, row).rowcount:
        return
    stored = session_of(db.execute(SESSION, session.key._asdict()).one())
    if stored.principal != session.principal:
        raise SessionError(
            f"session {session.id!r} belongs to someone else; start a new one under another id"
        )


def _replace_turn(db: StoreConnection, sql: str, row: Mapping[str, Any]) -> int:
    """Writes the row of a turn, new or not, and returns its number. Raises SessionError for a turn
    of another conversation, or one that another process has taken over."""
    for (number,) in db.run(sql, row).fetchall():
        return number
    raise SessionError(
        f"turn {row['id']!r} belongs to another conversation or to another process; leave the id out, "
        "or take another one"
    )
