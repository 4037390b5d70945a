"""A session, read from what its turns left: there is no second copy of a conversation."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kit.core.context import Principal
from kit.core.documents.document import AgentSession, SessionMessage
from kit.core.record import LINES
from kit.stores.documents.tables import Tables
from kit.stores.queries import WINDOW
from kit.stores.rows import readable, reader_values, unpacked
from kit.stores.shown import shown_in

_SESSION = """
SELECT
  state, started_at, last_active,
  (
    SELECT value FROM notes
    WHERE tenant_id = :tenant AND session_id = :session AND name = 'summary'
  ),
  (
    SELECT value FROM notes
    WHERE tenant_id = :tenant AND session_id = :session AND name = :support
  )
FROM agent_sessions
WHERE session_id = :session AND tenant_id = :tenant AND user_id = :user
"""


@dataclass(frozen=True, slots=True)
class SqlSessions:
    """Sessions as their turns left them. Turns write, in their own commits, so nothing is written here."""

    tables: Tables

    async def read(
        self, principal: Principal, session_id: str, agent: str = "", limit: int = LINES
    ) -> AgentSession | None:
        """Returns a session with the newest `limit` messages that an agent is told, "" being the orchestrator; None
        where there is none. The messages that a summary takes in are left out."""
        values = {**reader_values(principal), "session": session_id}
        rows = self.tables.database.read(_SESSION, {**values, "support": f"support:{principal}"})
        if not rows:
            return None
        state, started_at, last_active, note, support = rows[0]
        summary: dict[str, Any] = json.loads(note) if note and not agent else {}
        values |= {"agent": agent, "since": summary.get("through"), "limit": limit}
        return AgentSession(
            session_id=session_id,
            tenant_id=principal.tenant_id,
            user_id=principal.user_id,
            started_at=started_at,
            last_active=last_active,
            state=state,
            messages=_messages(agent, self.tables.database.read(WINDOW, values)),
            summary=summary.get("text"),
            support_conversation=support,
        )


def _messages(agent: str, rows: Sequence[Any]) -> tuple[SessionMessage, ...]:
    """Returns the lines that an agent is told; what a turn showed stands with the last of them."""
    last = {turn_id: position for turn_id, position, *_ in rows}
    messages: list[SessionMessage] = []
    for turn_id, position, role, text, started_at, seconds, log, size in rows:
        components = None
        if position == last[turn_id]:
            components = _components(turn_id, agent, unpacked(log or "[]", size))
        messages.append(
            SessionMessage(
                msg_id=f"{turn_id}:{position}",
                role=role,
                content=text,
                ts=started_at + (seconds if role == "assistant" else 0.0),
                turn_id=turn_id,
                sub_agent_id=agent or None,
                components=components,
            )
        )
    return tuple(messages)


def _components(turn_id: str, agent: str, log: str) -> list[dict[str, Any]] | None:
    """Returns what a turn showed, or one agent in it; None where that is nothing."""
    components: list[dict[str, Any]] = []
    for shown in readable(partial(shown_in, turn_id), log, turn_id) or ():
        if agent in ("", shown.agent):
            components.append({"type": shown.type, "payload": shown.payload})
    return components or None
