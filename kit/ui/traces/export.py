"""A turn as a file: its record, its routing decision, every span and every event, as JSON."""

import json

from kit.core.event import Event
from kit.core.record import TurnRecord
from kit.core.trace import trace_of


def export(turn: TurnRecord, events: tuple[Event, ...]) -> str:
    """Returns the JSON text of a turn. It holds what the store holds and no more: another
    principal's data was never stored."""
    trace = trace_of(events)
    whole = {
        "turn": turn.model_dump(mode="json"),
        "routing": trace.routing.model_dump(mode="json") if trace.routing else None,
        "spans": [
            span.model_dump(mode="json") | {"seconds": round(span.seconds, 6)}
            for span in trace.spans
        ],
        "events": [event.model_dump(mode="json") for event in events],
    }
    return json.dumps(whole, indent=1, ensure_ascii=False, default=str)
