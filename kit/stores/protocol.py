"""What the kit asks of a store, and of a sink that turns are copied to."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from kit.core.context import OPERATOR, Principal, Reader, Session, SessionKey
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
from kit.stores.tally import Tally
from kit.stores.turn_filter import Conversation, TurnChoices, TurnFilter, TurnPage

if TYPE_CHECKING:
    from kit.stores.documents.protocol import Documents


class Store(Protocol):
    """Sessions, turns, events, narration, notes and feedback. Calls are synchronous and short.

    A write waits for other writers, or with `wait=False` raises StoreBusy at once, for a loop that
    must not stand still.
    """

    def open_session(self, session: Session) -> None:
        """Writes the session if it is new; leaves an existing one alone. Raises SessionError when
        it is another user's of the same tenant."""
        ...

    def session(self, key: SessionKey) -> Session | None: ...

    def recall(self, key: SessionKey) -> SessionRecall | None:
        """The session, who was called last, and its notes; None when it was never opened."""
        ...

    def begin_turn(
        self,
        turn: TurnRecord,
        session: Session | None = None,
        events: Sequence[Event] = (),
        *,
        wait: bool = True,
    ) -> None:
        """Commits at once: an accepted turn survives a killed process. A `session` is opened in the
        same commit, as above.

        `events` is the turn's log, which grows: until the turn ends it is kept as it comes, at most a second late.
        Raises SessionError for the id of somebody else's turn.
        """
        ...

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
        """Writes the rollup, every event, the new narration and what the episode shall remember in one commit.

        A `session` is opened in it, for a turn whose begin was not written.
        """
        ...

    def keep_log(self, turn_id: str, events: Sequence[Event]) -> None:
        """Writes the log of a running turn as it stands. Raises StoreError for one that another process
        has taken over since."""
        ...

    def claim_turn(self, turn_id: str) -> bool:
        """Makes a turn that is paused or interrupted run again; False where it is neither, or
        somebody else was quicker."""
        ...

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
        ...

    def note(self, key: SessionKey, name: str) -> Note | None:
        """One note of an episode, or None."""
        ...

    def keep_note(self, key: SessionKey, name: str, note: Note) -> None:
        """Writes a note; a later one of the same name replaces it."""
        ...

    def shown_components(
        self, key: SessionKey, reader: Reader = OPERATOR, turns: int = 20
    ) -> list[ShownComponent]:
        """References to what the newest `turns` turns showed, oldest turn first, in the order shown,
        of the turns of the `reader`."""
        ...

    def keep_prompts(self, prompts: Sequence[CohortPrompt]) -> None:
        """Writes the prompts that are new, or whose tools are: what a cohort was shown before stays."""
        ...

    def prompt(self, cohort: str, at: float) -> CohortPrompt | None:
        """A cohort's prompt as it was at a moment, in seconds since the epoch; None where none was kept by then."""
        ...

    def mark_interrupted(self, every: float = 0.0) -> int:
        """Gives turns whose process died the status `interrupted`; returns how many. It does nothing
        where that was done within the last `every` seconds."""
        ...

    def turn(self, turn_id: str, reader: Reader) -> TurnRecord | None:
        """The rollup of a turn; None when it was never accepted, or is not the reader's."""
        ...

    def turns(
        self,
        session_id: str | None = None,
        tenant_id: str | None = None,
        user_id: str | None = None,
        limit: int = 50,
    ) -> list[TurnRecord]:
        """The newest turns that match, newest first."""
        ...

    def search(
        self, principal: Principal, by: TurnFilter, limit: int = 50, offset: int = 0
    ) -> TurnPage:
        """Some of the turns of a principal that pass a filter, newest first, and how many do."""
        ...

    def choices(self, principal: Principal) -> TurnChoices:
        """What the turns of a principal can be chosen by."""
        ...

    def conversations(
        self, principal: Principal, limit: int = 50, offset: int = 0
    ) -> tuple[list[Conversation], int]:
        """Some of the conversations of a principal, the newest first, and how many there are."""
        ...

    def tally(self, tenant_id: str | None = None, since: float | None = None) -> Tally:
        """What the turns of one tenant or all add up to, begun at `since` (seconds since the epoch) or later."""
        ...

    def events(self, turn_id: str, reader: Reader) -> list[Event]:
        """Every event of a turn in order; of one that runs, those kept so far; none of a turn that
        is not the reader's."""
        ...

    def give_feedback(self, feedback: Feedback) -> None:
        """One thumb a turn; a later one replaces it."""
        ...

    def feedback(self, turn_id: str) -> Feedback | None: ...

    def feedbacks(self, score: int) -> list[Feedback]:
        """Every thumb of that score, in the order of their turns."""
        ...

    def forget(self, principal: Principal) -> dict[str, int]:
        """Removes a principal's turns with their events, sessions, narration, notes and feedback;
        returns how many rows of each.

        Raises StoreBusy while a turn of theirs runs.
        """
        ...

    @property
    def has_souls(self) -> bool:
        """Whether anybody may have a soul: while nobody has, no turn reads one."""
        ...

    def with_souls(self, session: Session) -> Session:
        """Returns a session with what the souls of its tenant and its user say (docs/stores.md)."""
        ...

    def open_documents(self) -> "Documents":
        """The stores of documents beside the turns, the same ones each time (docs/stores.md). Raises StoreError."""
        ...

    def close(self) -> None: ...
