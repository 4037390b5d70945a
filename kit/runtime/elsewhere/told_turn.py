"""What the events of a turn come to, for whoever was told of them and did not run it."""

from collections.abc import Sequence

from kit.core.bodies.call import AgentEnded
from kit.core.bodies.turn import Completed, Routing, TurnUsage
from kit.core.event import Event
from kit.core.outcome import Answer, Failure, Outcome, RoutedOutcome, RoutingDecision, Usage
from kit.core.transcript import transcript
from kit.runtime.handle import Reply


def reply_of(events: Sequence[Event]) -> Reply | None:
    """Returns the reply that the events of a turn come to; None for one that never ended."""
    outcome_of: dict[tuple[str, str], Outcome] = {}
    routing: RoutingDecision | None = None
    usage = Usage()
    end: Event | None = None
    for event in events:
        match event.body:
            case AgentEnded(outcome=outcome):
                outcome_of[outcome.agent, outcome.call_id] = outcome
            case Routing(decision=decision):
                routing = decision
            case TurnUsage() as body:
                usage = body.usage
            case Completed():
                end = event
            case _:
                pass
    if routing is None or end is None or not isinstance(end.body, Completed):
        return None
    outcomes: list[Outcome] = []
    for line in routing.outcomes:
        # Parts of a monolith are its tools' work, and end without an event of their own.
        outcomes.append(outcome_of.get((line.agent, line.call_id)) or _outcome(line))
    text = end.body.text
    lead = transcript(events).lead
    return Reply(
        turn_id=end.turn_id,
        status=end.body.status,
        text=text,
        preamble="" if lead.strip() == text.strip() else lead,
        outcomes=tuple(outcomes),
        routing=routing,
        usage=usage,
        events=tuple(events),
        saved=end.body.saved,
    )


def _outcome(line: RoutedOutcome) -> Outcome:
    if line.reason is None:
        return Answer(call_id=line.call_id, agent=line.agent, text="")
    axis = "data" if line.result == "data_error" else "invocation"
    return Failure(call_id=line.call_id, agent=line.agent, axis=axis, reason=line.reason)
