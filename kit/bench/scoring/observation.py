"""What scorers may know of a turn, folded from its events, live or stored. It holds no times, so
equal turns are equal."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from kit.core.bodies.call import ModelEnded
from kit.core.event import Event
from kit.core.transcript import transcript
from kit.core.value import Value
from kit.patterns import PATTERNS
from kit.runtime.job import SUMMARY, Job

_OF_ROUTING = {"invoked", "dropped", "refused", "intent_count", "reported_intents"}
"""Fields of a routing decision that an observation has too; of a turn that never came to its
routing event, who began counts."""

_SUMMARIST = SUMMARY.field
"""Who sums up, as a call names it."""


class Observation(Value):
    """One turn, as it was seen from outside."""

    turn: int = 0
    """Place of the turn in its case."""
    status: str = "ok"
    text: str = ""
    """The answer as the user has it."""
    preamble: str = ""
    visible_texts: tuple[str, ...] = ()
    """Every text a person could read at some moment, replaced ones and progress lines too."""
    routed: bool = True
    """Whether the turn says whom it asked. A pattern that is somebody's own system, and neither lets
    the orchestrator decide nor dispatches to an agent of the deck, does not."""
    invoked: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    """Called, but over the cap: never run."""
    refused: tuple[str, ...] = ()
    """Called, but stopped by a guard."""
    intent_count: int = 0
    """Calls the orchestrator's model made."""
    reported_intents: int = 0
    """Intents it said it saw."""
    queries: Mapping[str, str] = {}
    """Agent -> the words it was given; those of several calls in lines."""
    answers: Mapping[str, str] = {}
    failed: tuple[str, ...] = ()
    """Ended in a failure and never answered."""
    with_reservation: tuple[str, ...] = ()
    """Answered with a reservation."""
    material: Mapping[str, str] = {}
    """Agent -> what its tools told it."""
    prior_context: Mapping[str, str] = {}
    summary: str | None = None
    """What old turns were summed up to during this one."""
    whole: int = 0
    """The newest turns that summary leaves alone."""
    acknowledged: str | None = None
    """How the kit says it owned up to what failed."""

    @cached_property
    def called(self) -> tuple[str, ...]:
        """Whom the orchestrator wanted, guards applied; those over the cap are among them."""
        return tuple(dict.fromkeys([*self.invoked, *self.dropped]))


def observe(events: Iterable[Event], turn: int = 0) -> Observation:
    """Folds the events of one turn."""
    events = tuple(events)
    by: dict[str, list[Any]] = defaultdict(list)
    for event in events:
        by[event.body.kind].append(event.body)
    visible = transcript(events)
    completed = by["completed"]
    if by["routing"]:
        routing = by["routing"][-1].decision
    else:
        routing = None
    if routing:
        own = {(outcome.agent, outcome.call_id) for outcome in routing.outcomes}
    else:
        own = None
    # agents further down are left out: what became of them is told by the agent that asked them
    begun = [
        body for body in by["agent_started"] if own is None or (body.agent, body.call_id) in own
    ]
    outcomes = [
        (e.agent, e.outcome)
        for e in by["agent_ended"]
        if own is None or (e.agent, e.outcome.call_id) in own
    ]
    answers = [(agent, outcome) for agent, outcome in outcomes if outcome.kind == "answer"]
    well = {agent for agent, _ in answers}
    tools = [
        (body.agent.rpartition("/")[2], body.result) for body in by["tool_ended"] if not body.error
    ]
    fields: dict[str, Any] = {"invoked": tuple(dict.fromkeys(body.agent for body in begun))}
    if routing is not None:
        fields = routing.model_dump(include=_OF_ROUTING)
    return Observation(
        turn=turn,
        routed=_is_routed(by),
        status=completed[0].status if completed else "running",
        text=(completed[0].text if completed else "") or visible.answer or visible.lead,
        preamble=visible.lead if visible.answer else "",
        visible_texts=tuple(
            body.text for kind in ("text", "text_replaced", "status_line") for body in by[kind]
        ),
        queries=_lines((body.agent, body.query) for body in begun),
        answers=_lines((agent, outcome.text) for agent, outcome in answers),
        failed=tuple(dict.fromkeys(agent for agent, _ in outcomes if agent not in well)),
        with_reservation=tuple(
            dict.fromkeys(agent for agent, outcome in answers if outcome.reservation)
        ),
        material=_lines(tools),
        prior_context=_lines(
            (body.agent, body.prior_context) for body in begun if body.prior_context
        ),
        summary=next(
            (
                _submitted_text(body, SUMMARY)
                for body in by["model_ended"]
                if body.agent == _SUMMARIST
            ),
            None,
        ),
        whole=next((body.kept for body in by["compacted"] if body.done), 0),
        acknowledged=by["acknowledged"][-1].path if by["acknowledged"] else None,
        **fields,
    )


def _is_routed(bodies: Mapping[str, Sequence[Any]]) -> bool:
    """Whether a turn came to a decision on whom to ask, as far as its events say; kind -> bodies of events.

    A turn of the kit's own patterns always is one of routing, also where it failed before that.
    """
    begun = bodies["turn_started"]
    if not bodies["routing"] or (begun and begun[0].pattern in PATTERNS):
        return True
    decision = bodies["routing"][-1].decision
    if decision.outcomes or decision.dropped or decision.refused or decision.rounds:
        return True
    return any(body.purpose == "decide" for body in bodies["model_started"])


def _lines(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    lines: dict[str, str] = {}
    for agent, text in pairs:
        lines[agent] = f"{lines[agent]}\n{text}" if agent in lines else text
    return lines


def _submitted_text(body: ModelEnded, job: Job) -> str | None:
    """What a helper model submitted, by its call on the trace, else its words."""
    for call in body.calls:
        if call.name == job.name:
            return str(call.args.get(job.field, call))
    return body.text or None
