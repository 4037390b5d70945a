"""A store that keeps nothing: for runs of many turns whose replies are all that is wanted of them."""

from collections.abc import Mapping, Sequence

from kit.core.context import Session
from kit.core.event import Event
from kit.core.record import Feedback, Message, Note, Recalled, Shown, TurnRecord


class BlankStore:
    """The Store protocol without a memory: every session is new and every turn is forgotten when its reply is given."""

    def open_session(self, session: Session) -> None: ...

    def session(self, session_id: str) -> Session | None:
        return None

    def recall(self, session_id: str) -> Recalled | None:
        return None

    def begin_turn(self, turn: TurnRecord) -> None: ...

    def end_turn(
        self,
        turn: TurnRecord,
        events: Sequence[Event],
        messages: Sequence[Message],
        notes: Mapping[str, Note] | None = None,
    ) -> None: ...

    def history(self, session_id: str, agent: str = "", limit: int = 40, since: str | None = None) -> list[Message]:
        return []

    def note(self, session_id: str, name: str) -> Note | None:
        return None

    def keep_note(self, session_id: str, name: str, note: Note) -> None: ...

    def shown(self, session_id: str) -> list[Shown]:
        return []

    def turn(self, turn_id: str) -> TurnRecord | None:
        return None

    def turns(
        self, session_id: str | None = None, tenant_id: str | None = None, user_id: str | None = None, limit: int = 50
    ) -> list[TurnRecord]:
        return []

    def events(self, turn_id: str) -> list[Event]:
        return []

    def give_feedback(self, feedback: Feedback) -> None: ...

    def feedback(self, turn_id: str) -> Feedback | None:
        return None

    def close(self) -> None: ...
