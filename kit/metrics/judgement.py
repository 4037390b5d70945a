"""What judges said of turns after these had ended, kept among the events of each turn's tenant."""

import time
from typing import Any

from kit.core.card import AgentCard
from kit.core.context import OPERATOR, Operator
from kit.core.documents.document import AgentEvent
from kit.core.record import TurnRecord
from kit.core.value import Value
from kit.stores.documents.protocol import EventFilter, EventStore

JUDGEMENT = "turn.judged"
SHED = "judges.shed"
"""Types of the events: a judgement, and how many turns were not judged because too many waited."""
MOST = 1_000_000
"""Events that are read at most."""


class Judgement(Value):
    """The score of one sub-agent's answer, or of a turn as a whole."""

    turn_id: str
    span_id: str
    """The span of the sub-agent, or of the turn."""
    session: str
    """The tenant and the id of the session in one text: the judgements of a session hang together."""
    agent: str = ""
    """The sub-agent; empty for the turn as a whole."""
    versions: dict[str, str]
    """Card -> the version that the session had of it."""
    judge: str
    """Who judged, by which rubric."""
    score: float
    """0 to 1."""
    why: str = ""


def judge_name(card: AgentCard) -> str:
    """Names who judges a card's answers, and by which rubric; empty where its `eval` says nothing."""
    if card.eval is None:
        return ""
    return f"{card.eval.judge} ({card.eval.rubric})"


async def keep_judgement(events: EventStore, turn: TurnRecord, judgement: Judgement) -> None:
    """Keeps a judgement; of a span that has one already the first stays. Raises StoreError."""
    event = _event(turn, JUDGEMENT, f"{JUDGEMENT}:{turn.id}:{judgement.span_id}")
    await events.append(event.replace(agent=judgement.agent, payload=judgement.model_dump()))


async def note_shed(events: EventStore, turn: TurnRecord, count: int) -> None:
    """Keeps how many turns before this one were not judged. Raises StoreError."""
    event = _event(turn, SHED, f"{SHED}:{turn.id}")
    await events.append(event.replace(payload={"turns": count}))


async def judgements(
    events: EventStore, tenant_id: str | Operator = OPERATOR, session_id: str | None = None
) -> list[Judgement]:
    """The judgements of a session of a tenant, or for an operator of all, in the order they were made.
    Raises StoreError."""
    payloads = await _payloads(events, JUDGEMENT, tenant_id, session_id)
    return [Judgement.model_validate(payload) for payload in payloads]


async def turns_shed(events: EventStore) -> int:
    """How many turns were not judged because too many waited. Raises StoreError."""
    count = 0
    for payload in await _payloads(events, SHED, OPERATOR, None):
        count += payload["turns"]
    return count


def _event(turn: TurnRecord, event_type: str, event_id: str) -> AgentEvent:
    return AgentEvent(
        event_id=event_id,
        tenant_id=turn.tenant_id,
        user_id=turn.user_id,
        session_id=turn.session_id,
        event_type=event_type,
        ts=time.time(),
    )


async def _payloads(
    events: EventStore, event_type: str, tenant_id: str | Operator, session_id: str | None
) -> list[dict[str, Any]]:
    by = EventFilter(tenant_id=tenant_id, session_id=session_id, event_type=event_type)
    return [event.payload for event in await events.query(by, MOST)]
