"""What metrics need of one turn, as a fold over its events: done once, when the turn ends."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kit.core.bodies.turn import Completed, TurnStarted
from kit.core.display.turn_parts import NO_PARTS, TurnParts, turn_parts
from kit.core.event import Event
from kit.core.outcome import OF_MODEL, STOPPED, Usage, total
from kit.core.record import AgentMeasure, Measures, PurposeUsage
from kit.core.status import UNKNOWN
from kit.core.timeout import diagnoses
from kit.core.trace import trace_of
from kit.core.value import builder, new_dict, new_list, new_set
from kit.metrics.breakages import broken_parts, leaks

_measures = builder(Measures)
_agent = builder(AgentMeasure)
_spent = builder(PurposeUsage)
_usage = builder(Usage)
WORDY = 40
"""Characters from which an answer that stands in another text is a quotation, and not chance."""
_ROUTING = frozenset({"decide", "prior_context"})
_NOTHING: Mapping[str, Any] = Usage().model_dump()


@dataclass(slots=True)
class _Invocation:
    agent: str
    began: float
    last_status: float
    statuses: int = 0
    unknown: int = 0
    first: float | None = None
    silence: float = 0.0
    alone: bool = True


@dataclass(slots=True)
class _Fold:
    running: dict[str, _Invocation] = field(default_factory=new_dict)
    agents: list[dict[str, Any]] = field(default_factory=new_list)
    late: dict[str, dict[str, Any]] = field(default_factory=new_dict)
    """Span of an invocation whose time ran out -> its measures."""
    deciding: dict[str, float] = field(default_factory=new_dict)
    routing: float | None = None
    lead: str | None = None
    fanning: bool = False
    overhead: float | None = None
    working: int = 0
    at: float = 0.0
    envelopes: int = 0
    mismatches: list[float] = field(default_factory=new_list)
    versions: int = 0
    model_faults: int = 0
    parts: TurnParts = NO_PARTS
    acknowledged: str | None = None
    compactions: int = 0
    answers: list[str] = field(default_factory=new_list)
    """What sub-agents answered, where it has words enough to tell a quotation from chance."""
    purposes: dict[str, str] = field(default_factory=new_dict)
    """Span of a model call -> what it is for."""
    spending: dict[str, dict[str, Any]] = field(default_factory=new_dict)
    counted: set[str | None] = field(default_factory=new_set)
    """Spans of agents whose spending other events tell: those of their model calls, or of agents that work for them."""
    is_fork: bool = False
    is_broken: bool = False


def measure(events: Sequence[Event]) -> Measures:
    """Folds the events of one turn, in order. Only where an agent's time ran out are they gone
    through again, for why."""
    fold = _Fold()
    for event in events:
        # A field of a pydantic model takes five times as long to read as a variable.
        body = event.body
        kind = body.kind
        at = event.at
        if fold.fanning and not fold.working:
            fold.overhead = (fold.overhead or 0.0) + at - fold.at
        fold.at = at
        if kind in _FOLDS:
            _FOLDS[kind](fold, event, body)
        # not in _FOLDS, where a plain turn would pay a call for it
        elif type(body) is TurnStarted and body.faults:
            fold.is_broken = True
    # Only few turns lose an agent to the clock: why is worked out for those alone.
    if fold.late:
        for span, diagnosis in diagnoses(trace_of(events)):
            fold.late[span.id]["cause"] = diagnosis.cause
    repeats = None
    end = events[-1].body if events else None
    is_composed = fold.answers and "compose" in fold.spending and fold.acknowledged != "rescued"
    if is_composed and isinstance(end, Completed):
        repeats = False
        for answer in fold.answers:
            repeats = repeats or answer in end.text
    broken = 0
    leaked = False
    if fold.is_broken:
        broken = broken_parts(events)
        leaked = leaks(events)
    agents: list[AgentMeasure] = []
    for fields in fold.agents:
        agents.append(_agent(**fields))
    spent: list[PurposeUsage] = []
    for purpose, sums in fold.spending.items():
        spent.append(_spent(purpose=purpose, usage=_usage(**sums)))
    return _measures(
        agents=tuple(agents),
        routing=fold.routing,
        overhead=fold.overhead,
        envelopes=fold.envelopes,
        mismatches=tuple(fold.mismatches),
        version_mismatches=fold.versions,
        model_faults=fold.model_faults,
        parts=fold.parts,
        acknowledged=fold.acknowledged,
        repeats=repeats,
        compactions=fold.compactions,
        broken=broken,
        leaked=leaked,
        spent=tuple(spent),
    )


def _model_started(fold: _Fold, event: Event, body: Any) -> None:
    purpose = body.purpose
    agent = body.agent
    if purpose == "decide" and fold.lead is None:
        fold.lead = agent
    if purpose == "job":
        purpose = agent
    fold.purposes[event.span_id] = purpose
    fold.counted.add(event.parent_span_id)
    if purpose in _ROUTING:
        fold.deciding[event.span_id] = event.at
    if agent == fold.lead:
        fold.fanning = False
    fold.working += 1


def _model_ended(fold: _Fold, event: Event, body: Any) -> None:
    fold.working -= 1
    span_id = event.span_id
    if span_id in fold.deciding:
        fold.routing = (fold.routing or 0.0) + event.at - fold.deciding[span_id]
    if span_id in fold.purposes:
        sums = fold.spending.setdefault(fold.purposes[span_id], {**_NOTHING})
        usage = body.usage
        sums["input_tokens"] += usage.input_tokens
        sums["output_tokens"] += usage.output_tokens
        sums["cached_tokens"] += usage.cached_tokens
        sums["model_calls"] += usage.model_calls
        sums["estimated"] |= usage.estimated
        if usage.cost is not None:
            sums["cost"] = (sums["cost"] or 0.0) + usage.cost
    if body.agent == fold.lead and body.calls:
        fold.fanning = True


def _fork(fold: _Fold, event: Event, body: Any) -> None:
    fold.is_fork = True


def _replay(fold: _Fold, event: Event, body: Any) -> None:
    # What it plays was spent by the turn that it forks, which is stored beside it.
    if fold.is_fork:
        fold.purposes.pop(event.span_id, None)
        fold.counted.add(event.span_id)


def _tool(fold: _Fold, event: Event, body: Any) -> None:
    fold.working += 1 if body.kind == "tool_started" else -1


def _agent_started(fold: _Fold, event: Event, body: Any) -> None:
    fold.counted.add(event.parent_span_id)
    started = _Invocation(body.agent, event.at, event.at)
    for span_id in fold.running:
        # One that works for another is not beside it.
        if span_id != event.parent_span_id:
            started.alone = False
            fold.running[span_id].alone = False
    fold.running[event.span_id] = started


def _status(fold: _Fold, event: Event, body: Any) -> None:
    by = fold.running.get(event.span_id) or fold.running.get(event.parent_span_id or "")
    if by is None:
        return
    # A word outside of the vocabulary is kept apart: a person never reads it.
    if body.status == UNKNOWN:
        by.unknown += 1
        return
    by.statuses += 1
    if by.first is None:
        by.first = event.at - by.began
    by.silence = max(by.silence, event.at - by.last_status)
    by.last_status = event.at


def _agent_ended(fold: _Fold, event: Event, body: Any) -> None:
    by = fold.running.pop(event.span_id, None)
    if by is None:
        return
    outcome = body.outcome
    usage = outcome.usage
    is_spending = usage.model_calls or usage.input_tokens or usage.cost or usage.untold_costs
    if event.span_id not in fold.counted and is_spending:
        # Of an agent of another system nothing but its outcome tells it.
        work = _usage(**fold.spending.get("work", _NOTHING))
        fold.spending["work"] = total((work, usage)).model_dump()
    is_answer = outcome.kind == "answer"
    data_faults = 0
    if is_answer and outcome.data_faults:
        # What its model got wrong is counted as a fault of the model, and what was stopped has not failed.
        data_faults = sum(fault not in OF_MODEL | STOPPED for fault in outcome.data_faults)
    if is_answer and len(outcome.text) >= WORDY:
        fold.answers.append(outcome.text)
    fold.agents.append(
        {
            "agent": by.agent,
            "seconds": event.at - by.began,
            "ok": is_answer,
            "axis": None if is_answer else outcome.axis,
            "reason": None if is_answer else outcome.reason,
            "data_faults": data_faults,
            "partial": is_answer and outcome.is_partial,
            "statuses": by.statuses,
            "unknown_statuses": by.unknown,
            "first_status": by.first,
            "longest_silence": max(by.silence, event.at - by.last_status),
            "alone": by.alone,
        }
    )
    if not is_answer and outcome.reason == "timeout":
        fold.late[event.span_id] = fold.agents[-1]


def _envelope(fold: _Fold, event: Event, body: Any) -> None:
    fold.envelopes += 1
    if not body.principal_verified:
        fold.mismatches.append(event.at)
    if not body.version_ok:
        fold.versions += 1


def _refused(fold: _Fold, event: Event, body: Any) -> None:
    fold.model_faults += body.what == "tool"


def _routing(fold: _Fold, event: Event, body: Any) -> None:
    fold.parts = turn_parts(body.decision)


def _acknowledged(fold: _Fold, event: Event, body: Any) -> None:
    fold.acknowledged = body.path


def _agent_broken(fold: _Fold, event: Event, body: Any) -> None:
    fold.is_broken = True


def _compacted(fold: _Fold, event: Event, body: Any) -> None:
    fold.compactions += body.done


_FOLDS: Mapping[str, Callable[[_Fold, Event, Any], None]] = {
    "model_started": _model_started,
    "model_ended": _model_ended,
    "fork": _fork,
    "replay": _replay,
    "tool_started": _tool,
    "tool_ended": _tool,
    "agent_started": _agent_started,
    "agent_ended": _agent_ended,
    "status": _status,
    "envelope": _envelope,
    "refused": _refused,
    "acknowledged": _acknowledged,
    "routing": _routing,
    "compacted": _compacted,
    "agent_broken": _agent_broken,
}
"""Kind of event -> what it adds; looked up by name because every turn pays for this, and a lookup costs no call."""
