"""A turn as a file: its record, its routing decision, every span and every event, as JSON."""

from pydantic_core import to_json

from kit.core.event import Event
from kit.core.record import TurnRecord
from kit.core.trace import trace_of


def export(turn: TurnRecord, events: tuple[Event, ...]) -> str:
    """Returns the JSON text of a turn. It holds what the store holds and no more: another
    principal's data was never stored."""
    trace = trace_of(events)
    spans: list[object] = []
    for span in trace.spans:
        # The length is no field of a span: it is what a reader of the file looks for first.
        spans.append(span.model_dump(mode="json") | {"seconds": round(span.seconds, 6)})
    whole = {"turn": turn, "routing": trace.routing, "spans": spans, "events": events}
    return to_json(whole, indent=1, fallback=str).decode()
