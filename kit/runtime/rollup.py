"""What remains of a turn once it is over: its routing decision, its rollup row, its narration."""

from collections.abc import Sequence
from itertools import pairwise

from kit.core.bodies.speech import Separator, Text
from kit.core.display.turn_parts import TurnStatus
from kit.core.event import Event
from kit.core.outcome import (
    AgentCall,
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
from kit.runtime.context import TurnState
from kit.runtime.log import TurnLog
from kit.runtime.pattern import Pattern

_new_message = builder(Message)
_new_decision = builder(RoutingDecision)
_new_line = builder(RoutedOutcome)


def routing_of(turn: TurnState, pattern: Pattern) -> RoutingDecision:
    """Returns the routing decision of a turn: who was asked, how the cap behaved, what became of each part."""
    unanswered = turn.unanswered()
    behavior: CapBehavior = "within"
    if turn.over_cap or turn.reported > turn.cap:
        behavior = "over"
    elif turn.cap_used and turn.cap_used == turn.cap:
        behavior = "at"
    invoked: dict[str, None] = {}
    lines: list[RoutedOutcome] = []
    for outcome in turn.outcomes:
        # An agent that only handed the conversation on has done no work for the user.
        if isinstance(outcome, Failure) or outcome.text or not outcome.hands_to:
            invoked[outcome.agent] = None
        lines.append(_routing_outcome(outcome, mended=outcome not in unanswered.failures))
    return _new_decision(
        pattern=turn.pattern,
        invoked=tuple(invoked),
        intent_count=turn.emitted,
        later_calls=turn.emitted_later,
        reported_intents=turn.reported or turn.emitted,
        cap=turn.cap,
        cap_behavior=behavior,
        dropped=tuple([call.agent for call in unanswered.over_cap]),
        refused=tuple([call.agent for call in turn.set_aside]),
        left_out=turn.left_out(),
        parts=turn.coverage().parts,
        outcomes=tuple(lines),
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
    first_text_at = None
    for event in events:
        if event.body.__class__ is Text:
            first_text_at = event.at
            break
    failed: list[str] = []
    for outcome in routing.outcomes:
        if outcome.result in ("failure", "data_error") and not outcome.mended:
            failed.append(outcome.agent)
    return begun.replace(
        seconds=events[-1].at,
        status=status,
        text=text,
        invoked=routing.invoked,
        failed=tuple(failed),
        intent_count=routing.intent_count,
        cap_behavior=routing.cap_behavior,
        ttft=first_text_at,
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
    separators = [event.seq for event in state.log.events if event.body.__class__ is Separator]
    if separators:
        texts = _parts(turn.text, state.log, separators)
    else:
        texts = [turn.text]
    messages = [_new_message(turn_id=turn.id, role="user", text=turn.message)]
    messages += [_new_message(turn_id=turn.id, role="assistant", text=text) for text in texts]
    replies: list[tuple[AgentCall | Outcome, str]] = []
    unanswered: list[AgentCall | Outcome] = []
    for outcome in state.outcomes:
        if isinstance(outcome, Failure):
            unanswered.append(outcome)
        elif not outcome.is_handover:
            replies.append((outcome, outcome.text))
    # What was answered comes first: an agent's newest line says whether it still owes something.
    replies += [(call, UNANSWERED) for call in (*unanswered, *state.over_cap)]
    queries = {call.call_id: call.query for call in state.calls}
    for call, text in replies:
        query = queries.get(call.call_id)
        if query is None:
            query = turn.message
        elif state.pictures:
            query = mark_pictures(query, state.pictures)
        messages.append(_new_message(turn_id=turn.id, role="user", text=query, agent=call.agent))
        reply = _new_message(turn_id=turn.id, role="assistant", text=text, agent=call.agent)
        messages.append(reply)
    return messages


def _parts(text: str, log: TurnLog, separators: Sequence[int]) -> list[str]:
    """Cuts the answer at its separators; returns it whole where the page showed other words in the end."""
    edges = [-1, *separators, len(log.events)]
    parts: list[str] = []
    for low, high in pairwise(edges):
        parts.append(transcript(log.events[low + 1 : high]).answer.strip())
    is_whole = "".join("".join(parts).split()) == "".join(text.split())
    if is_whole and text:
        return [part for part in parts if part]
    return [text]


def _routing_outcome(outcome: Outcome, *, mended: bool) -> RoutedOutcome:
    """Returns an outcome's line; `mended`: another call of the same request was answered."""
    if isinstance(outcome, Failure):
        return _new_line(
            agent=outcome.agent,
            call_id=outcome.call_id,
            result="data_error" if outcome.axis == "data" else "failure",
            reason=outcome.reason,
            mended=mended,
        )
    if outcome.is_handover:
        result = "handed_on"
    elif outcome.is_partial:
        result = "partial"
    else:
        result = "success"
    return _new_line(agent=outcome.agent, call_id=outcome.call_id, result=result)
