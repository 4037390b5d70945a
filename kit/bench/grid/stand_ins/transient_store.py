"""A store for turns that are told their history: it keeps the newest rollups until they are taken, and nothing else."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kit.core.context import OPERATOR, Principal, Reader, Session, SessionKey
from kit.core.errors import StoreError
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
from kit.stores.tally import Tally, tally_of
from kit.stores.turn_filter import Conversation, TurnChoices, TurnFilter, TurnPage

if TYPE_CHECKING:
    from kit.stores.documents.protocol import Documents


class TransientStore:
    """The Store protocol without a memory: a session is always new, and a large grid takes no more
    room than a small one."""

    has_souls = False

    def __init__(self) -> None:
        self._records: dict[str, TurnRecord] = {}

    def take(self, turn_id: str) -> TurnRecord:
        """The rollup of a turn that has ended; it can be taken once."""
        return self._records.pop(turn_id)

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
        self._records[turn.id] = turn

    def open_session(self, session: Session) -> None: ...
    def begin_turn(
        self,
        turn: TurnRecord,
        session: Session | None = None,
        events: Sequence[Event] = (),
        *,
        wait: bool = True,
    ) -> None: ...
    def keep_note(self, key: SessionKey, name: str, note: Note) -> None: ...
    def give_feedback(self, feedback: Feedback) -> None: ...
    def keep_prompts(self, prompts: Sequence[CohortPrompt]) -> None: ...
    def keep_log(self, turn_id: str, events: Sequence[Event]) -> None: ...

    def forget(self, principal: Principal) -> dict[str, int]:
        return {}

    def open_documents(self) -> "Documents":
        raise StoreError(
            "a store that keeps nothing has no documents: open a kit with a store of its own"
        )

    def with_souls(self, session: Session) -> Session:
        return session

    def close(self) -> None: ...

    def claim_turn(self, turn_id: str) -> bool:
        return False

    def prompt(self, cohort: str, at: float) -> CohortPrompt | None:
        return None

    def session(self, key: SessionKey) -> Session | None:
        return None

    def recall(self, key: SessionKey) -> SessionRecall | None:
        return None

    def history(
        self,
        key: SessionKey,
        agent: str = "",
        limit: int = 40,
        since: str | None = None,
        reader: Reader = OPERATOR,
    ) -> list[Message]:
        return []

    def note(self, key: SessionKey, name: str) -> Note | None:
        return None

    def shown_components(
        self, key: SessionKey, reader: Reader = OPERATOR, turns: int = 20
    ) -> list[ShownComponent]:
        return []

    def turn(self, turn_id: str, reader: Reader) -> TurnRecord | None:
        record = self._records.get(turn_id)
        if record is None or reader not in (OPERATOR, record.principal):
            return None
        return record

    def turns(
        self,
        session_id: str | None = None,
        tenant_id: str | None = None,
        user_id: str | None = None,
        limit: int = 50,
    ) -> list[TurnRecord]:
        return []

    def search(
        self, principal: Principal, by: TurnFilter, limit: int = 50, offset: int = 0
    ) -> TurnPage:
        return TurnPage((), 0, 0.0)

    def choices(self, principal: Principal) -> TurnChoices:
        return TurnChoices(0, (), (), 0.0)

    def conversations(
        self, principal: Principal, limit: int = 50, offset: int = 0
    ) -> tuple[list[Conversation], int]:
        return [], 0

    def tally(self, tenant_id: str | None = None, since: float | None = None) -> Tally:
        return tally_of(self._records.values())

    def events(self, turn_id: str, reader: Reader) -> list[Event]:
        return []

    def feedback(self, turn_id: str) -> Feedback | None:
        return None

    def feedbacks(self, score: int) -> list[Feedback]:
        return []

    def mark_interrupted(self, every: float = 0.0) -> int:
        """Returns 0: no turn outlives the process that plays it."""
        return 0
