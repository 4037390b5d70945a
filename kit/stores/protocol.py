"""What the kit asks of a store, and of a sink that turns are copied to."""

from collections.abc import Sequence
from typing import Protocol

from kit.core.context import Session
from kit.core.event import Event
from kit.core.record import Feedback, Message, TurnRecord


class Store(Protocol):
    """Sessions, turns, events, narration and feedback. Calls are synchronous and short."""

    def open_session(self, session: Session) -> None:
        """Writes the session if it is new; leaves an existing one alone."""
        ...

    def session(self, session_id: str) -> Session | None: ...

    def begin_turn(self, turn: TurnRecord) -> None:
        """Commits at once: an accepted turn survives a killed process."""
        ...

    def end_turn(self, turn: TurnRecord, events: Sequence[Event], messages: Sequence[Message]) -> None:
        """Writes the rollup, every event and the new narration in one commit."""
        ...

    def history(self, session_id: str, agent: str = "", limit: int = 40) -> list[Message]:
        """The newest `limit` messages of one reader of one session, oldest first."""
        ...

    def turn(self, turn_id: str) -> TurnRecord | None: ...

    def turns(
        self, session_id: str | None = None, tenant_id: str | None = None, user_id: str | None = None, limit: int = 50
    ) -> list[TurnRecord]:
        """The newest turns that match, newest first."""
        ...

    def events(self, turn_id: str) -> list[Event]: ...

    def give_feedback(self, feedback: Feedback) -> None:
        """One thumb a turn; a later one replaces it."""
        ...

    def feedback(self, turn_id: str) -> Feedback | None: ...

    def close(self) -> None: ...
