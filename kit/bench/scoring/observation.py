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
    bodies: dict[str, list[Any]] = defaultdict(list)
    for event in events:
        bodies[event.body.kind].append(event.body)
    visible = transcript(events)
    status = "running"
    text = ""
    for body in bodies["completed"]:
        status = body.status
        text = body.text
    begun = bodies["agent_started"]
    ended = bodies["agent_ended"]
    if bodies["routing"]:
        decision = bodies["routing"][-1].decision
        # Agents further down are left out: the agent that asked them tells what became of them.
        calls = {(outcome.agent, outcome.call_id) for outcome in decision.outcomes}
        begun = [body for body in begun if (body.agent, body.call_id) in calls]
        ended = [body for body in ended if (body.agent, body.outcome.call_id) in calls]
        routed_fields: dict[str, Any] = decision.model_dump(include=_OF_ROUTING)
    else:
        routed_fields = {"invoked": tuple(dict.fromkeys(body.agent for body in begun))}
    answers = [body for body in ended if body.outcome.kind == "answer"]
    with_answer = {body.agent for body in answers}
    failed: dict[str, None] = {}
    for body in ended:
        if body.agent not in with_answer:
            failed[body.agent] = None
    with_reservation: dict[str, None] = {}
    for body in answers:
        if body.outcome.reservation:
            with_reservation[body.agent] = None
    tool_texts: list[tuple[str, str]] = []
    for body in bodies["tool_ended"]:
        if not body.error:
            tool_texts.append((body.agent.rpartition("/")[2], body.result))
    visible_bodies = [*bodies["text"], *bodies["text_replaced"], *bodies["status_line"]]
    summaries = [body for body in bodies["model_ended"] if body.agent == _SUMMARIST]
    kept = [body.kept for body in bodies["compacted"] if body.done]
    acknowledged = [body.path for body in bodies["acknowledged"]]
    return Observation(
        turn=turn,
        routed=_is_routed(bodies),
        status=status,
        text=text or visible.answer or visible.lead,
        preamble=visible.lead if visible.answer else "",
        visible_texts=tuple(body.text for body in visible_bodies),
        queries=_lines((body.agent, body.query) for body in begun),
        answers=_lines((body.agent, body.outcome.text) for body in answers),
        failed=tuple(failed),
        with_reservation=tuple(with_reservation),
        material=_lines(tool_texts),
        prior_context=_lines(
            (body.agent, body.prior_context) for body in begun if body.prior_context
        ),
        summary=_submitted_text(summaries[0], SUMMARY) if summaries else None,
        whole=kept[0] if kept else 0,
        acknowledged=acknowledged[-1] if acknowledged else None,
        **routed_fields,
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
    for body in bodies["model_started"]:
        if body.purpose == "decide":
            return True
    return False


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
