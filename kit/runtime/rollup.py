"""What remains of a turn once it is over: its routing decision, its rollup row, its narration."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from kit.core.bodies.speech import Separator, Text
from kit.core.display.turn_parts import TurnStatus
from kit.core.event import Event
from kit.core.outcome import (
    Answer,
    CapBehavior,
    Failure,
    Outcome,
    RoutedOutcome,
    RoutingDecision,
    Usage,
)
from kit.core.picture import mark_pictures
from kit.core.record import UNANSWERED, Message, TurnRecord
from kit.core.transcript import transcript
from kit.core.value import builder
from kit.metrics.measures import measure
from kit.runtime.call_ledger import request_key
from kit.runtime.context import TurnState
from kit.runtime.log import TurnLog
from kit.runtime.pattern import Pattern

_new_message = builder(Message)
_new_decision = builder(RoutingDecision)
_new_line = builder(RoutedOutcome)


_Request = tuple[str, str]
"""An agent and its query, as `request_key` has them."""


def routing_of(turn: TurnState, pattern: Pattern) -> RoutingDecision:
    """Returns the routing decision of a turn: who was asked, how the cap behaved, what became of each part."""
    requests = {call.call_id: request_key(call.agent, call.query) for call in turn.calls}
    answered_requests: set[_Request | None] = set()
    for outcome in turn.outcomes:
        if outcome.kind == "answer":
            answered_requests.add(requests.get(outcome.call_id))
    answered_requests.discard(None)
    over_cap_agents: dict[_Request, str] = {}
    for call in turn.over_cap:
        request = request_key(call.agent, call.query)
        if request not in answered_requests:
            over_cap_agents.setdefault(request, call.agent)
    over = turn.over_cap or turn.reported > turn.cap
    behavior: CapBehavior = (
        "over" if over else "at" if turn.cap_used and turn.cap_used == turn.cap else "within"
    )
    return _new_decision(
        pattern=turn.pattern,
        invoked=tuple(
            dict.fromkeys(
                o.agent for o in turn.outcomes if isinstance(o, Failure) or o.text or not o.hands_to
            )
        ),
        intent_count=turn.emitted,
        later_calls=turn.emitted_later,
        reported_intents=turn.reported or turn.emitted,
        cap=turn.cap,
        cap_behavior=behavior,
        dropped=tuple(over_cap_agents.values()),
        refused=tuple(call.agent for call in turn.set_aside),
        left_out=turn.left_out(),
        parts=turn.coverage().parts,
        outcomes=tuple(
            [_routing_outcome(outcome, requests, answered_requests) for outcome in turn.outcomes]
        ),
        rounds=turn.rounds,
        has_failsafe=pattern.has_failsafe,
    )


def record_of(
    begun: TurnRecord,
    events: Sequence[Event],
    routing: RoutingDecision,
    usage: Usage,
    status: TurnStatus,
    text: str,
) -> TurnRecord:
    """Returns the stored row of a finished turn."""
    first = next((event.at for event in events if event.body.__class__ is Text), None)
    return begun.replace(
        seconds=events[-1].at,
        status=status,
        text=text,
        invoked=routing.invoked,
        failed=tuple(
            outcome.agent
            for outcome in routing.outcomes
            if outcome.result in ("failure", "data_error") and not outcome.mended
        ),
        intent_count=routing.intent_count,
        cap_behavior=routing.cap_behavior,
        ttft=first,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        model_calls=usage.model_calls,
        tool_calls=usage.tool_calls,
        cost=usage.cost,
        measures=measure(events),
    )


def dialogue(turn: TurnRecord, state: TurnState) -> list[Message]:
    """Returns the messages a turn leaves for each reader: what the user saw for the orchestrator,
    its own part for each agent.

    What the user saw is one message, or one for each part where parts stand apart. A question that
    got no answer stays in its agent's part, marked as open; one that a guard dropped was never the
    user's (decisions 27).
    """
    cuts = [event.seq for event in state.log.events if event.body.__class__ is Separator]
    if cuts:
        answers = _parts(turn.text, state.log, cuts)
    else:
        answers = [turn.text]
    messages = [_new_message(turn_id=turn.id, role="user", text=turn.message)]
    messages += [_new_message(turn_id=turn.id, role="assistant", text=text) for text in answers]
    queries = {call.call_id: call.query for call in state.calls}
    if state.pictures:
        queries = {
            call_id: mark_pictures(query, state.pictures) for call_id, query in queries.items()
        }
    answers = [one for one in state.outcomes if isinstance(one, Answer) and not one.is_handover]
    failures = [one for one in state.outcomes if isinstance(one, Failure)]
    for one in (*answers, *failures, *state.over_cap):
        if isinstance(one, Answer):
            text = one.text
        else:
            text = UNANSWERED
        query = queries.get(one.call_id, turn.message)
        messages.append(_new_message(turn_id=turn.id, role="user", text=query, agent=one.agent))
        messages.append(_new_message(turn_id=turn.id, role="assistant", text=text, agent=one.agent))
    return messages


def _parts(text: str, log: TurnLog, cuts: Sequence[int]) -> list[str]:
    """Cuts the answer at its separators; returns it whole where the page showed other words in the end."""
    edges = [-1, *cuts, len(log.events)]
    parts = [
        transcript(e for e in log.events if low < e.seq < high).answer.strip()
        for low, high in pairwise(edges)
    ]
    whole = "".join("".join(parts).split()) == "".join(text.split())
    if whole and text:
        return [part for part in parts if part]
    return [text]


def _routing_outcome(
    outcome: Outcome,
    requests: Mapping[str, _Request],
    answered_requests: set[_Request | None],
) -> RoutedOutcome:
    """`requests` are those of the turn by the id of their call, `answered` those that have an answer."""
    if outcome.kind == "answer":
        if outcome.is_handover:
            result = "handed_on"
        elif outcome.is_partial:
            result = "partial"
        else:
            result = "success"
        return _new_line(agent=outcome.agent, call_id=outcome.call_id, result=result)
    if outcome.axis == "data":
        result = "data_error"
    else:
        result = "failure"
    return _new_line(
        agent=outcome.agent,
        call_id=outcome.call_id,
        result=result,
        reason=outcome.reason,
        mended=requests.get(outcome.call_id) in answered_requests,
    )
