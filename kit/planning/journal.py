"""What a plan and its tasks do, written down where monitoring, the page and whoever resumes the plan read it."""

import time
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any

from kit.core.context import Principal
from kit.core.documents.document import AgentEvent
from kit.core.secret import without_secrets
from kit.stores.documents.protocol import EventStore

_COLUMNS = frozenset(AgentEvent.model_fields)


@dataclass(frozen=True, slots=True)
class Journal:
    """Writes events of one plan, or of one of its tasks; each names its whole lineage."""

    events: EventStore
    principal: Principal
    session_id: str
    plan_id: str
    task_id: str | None = None
    agent: str | None = None
    clock: Callable[[], float] = time.time
    secrets: Collection[str] = field(default=(), repr=False)
    """What no event holds."""

    def of_task(self, task_id: str, agent: str) -> "Journal":
        """The journal of one task of the plan."""
        return replace(self, task_id=task_id, agent=agent)

    async def write(
        self, event_type: str, *, event_id: str | None = None, **fields: Any
    ) -> AgentEvent:
        """Writes an event; what its document has no field for goes into its payload. One with a
        known id is written once."""
        columns: dict[str, Any] = {}
        payload: dict[str, Any] = {}
        for name, value in fields.items():
            if name in _COLUMNS:
                columns[name] = value
            else:
                payload[name] = value
        event = AgentEvent(
            event_id=event_id or uuid.uuid4().hex,
            tenant_id=self.principal.tenant_id,
            user_id=self.principal.user_id,
            session_id=self.session_id,
            plan_id=self.plan_id,
            event_type=event_type,
            ts=self.clock(),
            payload=payload or None,
            task_id=self.task_id,
            agent=self.agent,
        )
        return await self.events.append(without_secrets(event.replace(**columns), self.secrets))
