"""What the events of one step say of it: its output, its signals, and the calls it has begun."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any, cast

from kit.core.documents.document import AgentEvent, Memory
from kit.core.schema.shape import Shape, schema_of
from kit.core.schema.validator import validator
from kit.planning.services import PlanServices
from kit.planning.skill_call import CALL, START
from kit.stores.documents.protocol import EventFilter
from kit.tools.task_memory import Task

GAVE_UP = "subagent.insufficient"
"""Event of a step that says that it cannot be done as it is."""


@dataclass(frozen=True, slots=True)
class StepLog:
    """The log of one step, read anew with each question."""

    services: PlanServices
    task: Task

    async def output(self, shape: Shape) -> Memory | None:
        """The last output that the step has written, if it has that shape; None where there is none."""
        written = await self._events("memory.written")
        if not written:
            return None
        signals = await self._events(GAVE_UP)
        # What it wrote before it said that it could not do this is taken back.
        if signals and signals[-1].seq > written[-1].seq:
            return None
        memory = await self.services.memory.read(self.task.principal, _payload(written[-1])["key"])
        if memory and validator(schema_of(shape)).wrong(memory.value) is None:
            return memory
        return None

    async def has_looked_up(self) -> bool:
        """Whether a call of a skill gave something before the step wrote its last output."""
        written = await self._events("memory.written")
        for event in await self._events(CALL):
            if event.status == "ok" and event.seq < written[-1].seq:
                return True
        return False

    async def suggestion(self) -> str:
        """What its executor said should be planned in its place; empty where it said nothing."""
        signals = await self._events(GAVE_UP)
        if signals:
            return str(_payload(signals[-1]).get("suggestion", ""))
        return ""

    async def violation(self) -> str | None:
        """How its last output broke the return spec, as JSON; None where none did."""
        violations = await self._events("contract_violation")
        if violations:
            return json.dumps(violations[-1].payload)
        return None

    async def calls_begun(self) -> tuple[int, set[str]]:
        """How many calls of skills it has made, and the keys of those that may not be made twice."""
        starts = await self._events(START)
        calls = await self._events(CALL)
        first_attempts = [event for event in calls if "attempt" not in _payload(event)]
        return len(first_attempts), {event.event_id for event in starts}

    async def lost_act(self) -> str | None:
        """The skill that may have acted, to an end that nobody knows, and may not be called twice;
        None where there is none."""
        calls = await self._events(CALL)
        for event in calls:
            if _payload(event).get("uncertain"):
                return event.skill_id
        starts = Counter(event.skill_id for event in await self._events(START))
        ends = Counter(event.skill_id for event in calls)
        # One that was started more often than it came back was at work when its process died.
        for skill in starts - ends:
            return skill
        return None

    async def _events(self, kind: str) -> list[AgentEvent]:
        by = EventFilter(
            tenant_id=self.task.principal.tenant_id,
            plan_id=self.task.plan_id,
            task_id=self.task.id,
            event_type=kind,
        )
        return await self.services.documents.events.query(by)


def _payload(event: AgentEvent) -> dict[str, Any]:
    return cast("dict[str, Any]", event.payload or {})
