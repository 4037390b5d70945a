"""A session, read from what its turns left: there is no second copy of a conversation."""

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

from kit.core.context import Principal
from kit.core.record import LINES
from kit.stores.documents.document import AgentSession, SessionMessage
from kit.stores.documents.tables import Tables
from kit.stores.rows import readable
from kit.stores.shown import shown_in
from kit.stores.statements import WINDOW

_SESSION = """SELECT state, started_at, last_active,
  (SELECT value FROM notes n WHERE n.session_id = s.session_id AND name = 'summary'),
  (SELECT value FROM notes n WHERE n.session_id = s.session_id AND name = ?)
FROM agent_sessions s WHERE session_id = ? AND tenant_id = ? AND user_id = ?"""


@dataclass(frozen=True, slots=True)
class SqliteSessions:
    """The SessionStore protocol over the tables of turns."""

    tables: Tables

    async def read(
        self, principal: Principal, session_id: str, agent: str = "", limit: int = LINES
    ) -> AgentSession | None:
        names = {
            "session_id": session_id,
            "tenant_id": principal.tenant_id,
            "user_id": principal.user_id,
        }
        rows = self.tables.database.read(_SESSION, f"support:{principal}", *names.values())
        if not rows:
            return None
        state, started_at, last_active, note, support = rows[0]
        summary: dict[str, Any] = json.loads(note) if note and not agent else {}
        messages = self._messages(principal, session_id, agent, summary.get("through"), limit)
        times = {"started_at": started_at, "last_active": last_active}
        return AgentSession(
            **names,
            **times,
            state=state,
            messages=messages,
            summary=summary.get("text"),
            support_conversation=support,
        )

    def _messages(
        self, principal: Principal, session_id: str, agent: str, since: str | None, limit: int
    ) -> tuple[SessionMessage, ...]:
        """Returns the lines that the agent is told; what a turn showed stands with the last of them."""
        values = {
            "session": session_id,
            "tenant": principal.tenant_id,
            "user": principal.user_id,
            "agent": agent,
        }
        rows = self.tables.database.read(WINDOW, **values, since=since, limit=limit)
        last = {turn_id: position for turn_id, position, *_ in rows}
        messages: list[SessionMessage] = []
        for turn_id, position, role, text, started_at, seconds, log in rows:
            messages.append(
                SessionMessage(
                    msg_id=f"{turn_id}:{position}",
                    role=role,
                    content=text,
                    ts=started_at + (seconds if role == "assistant" else 0.0),
                    turn_id=turn_id,
                    sub_agent_id=agent or None,
                    components=_components(turn_id, agent, log)
                    if position == last[turn_id]
                    else None,
                )
            )
        return tuple(messages)


def _components(turn_id: str, agent: str, log: str) -> list[dict[str, Any]] | None:
    """Returns what a turn showed, or one agent in it; None where that is nothing."""
    items = readable(partial(shown_in, turn_id), log, turn_id) or ()
    return [
        {"type": one.type, "payload": one.payload} for one in items if agent in ("", one.agent)
    ] or None
