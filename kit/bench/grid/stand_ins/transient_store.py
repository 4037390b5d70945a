"""A store for turns that are told their history: it keeps the newest rollups until they are taken, and nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any

from kit.core.context import OPERATOR, Reader, Session, SessionKey
from kit.core.errors import StoreError
from kit.core.event import Event
from kit.core.record import CohortPrompt, Message, Note, SessionRecall, ShownComponent, TurnRecord
from kit.stores.sqlite import SqliteStore
from kit.stores.tally import Tally, tally_of


class TransientStore(SqliteStore):
    """An empty store that stays so: a session is always new, and a large grid takes no more room than a small one."""

    def __init__(self) -> None:
        super().__init__(":memory:")
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

    def begin_turn(
        self,
        turn: TurnRecord,
        session: Session | None = None,
        events: Sequence[Event] = (),
        *,
        wait: bool = True,
    ) -> None: ...

    def open_session(self, session: Session) -> None: ...
    def keep_log(self, turn_id: str, events: Sequence[Event]) -> None: ...
    def keep_note(self, key: SessionKey, name: str, note: Note) -> None: ...
    def keep_prompts(self, prompts: Sequence[CohortPrompt]) -> None: ...

    def open_documents(self) -> Any:
        raise StoreError(
            "a store that keeps nothing has no documents: open a kit with a store of its own"
        )

    # What follows is asked in every turn, and would be looked for in tables that are empty.

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

    def tally(self, tenant_id: str | None = None, since: float | None = None) -> Tally:
        return tally_of(self._records.values())
