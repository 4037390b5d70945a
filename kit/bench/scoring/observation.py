"""What scorers may know of a turn, folded from its events, live or stored. It holds no times, so
equal turns are equal."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any

from kit.core.bodies.call import ModelEnded
from kit.core.event import Event
from kit.core.transcript import transcript
from kit.core.value import Value
from kit.patterns import PATTERNS
from kit.runtime.job import SUMMARY, Job

_OF_ROUTING = {"invoked", "dropped", "intent_count", "reported_intents"}
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
    labels: Mapping[str, str] = {}
    """Agent -> what people read in place of its id, where its card says so."""

    @cached_property
    def called(self) -> tuple[str, ...]:
        """Whom the orchestrator wanted, guards applied; those over the cap are among them."""
        return tuple(dict.fromkeys([*self.invoked, *self.dropped]))


def observe(
    events: Iterable[Event], turn: int = 0, labels: Mapping[str, str] | None = None
) -> Observation:
    """Folds the events of one turn."""
    events = tuple(events)
    bodies: dict[str, list[Any]] = defaultdict(list)
    for event in events:
        bodies[event.body.kind].append(event.body)
    visible = transcript(events)
    # A turn whose process died has no last event.
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
        routed_fields = {"invoked": tuple(dict.fromkeys(map(attrgetter("agent"), begun)))}
    queries = _Lines()
    prior_context = _Lines()
    for body in begun:
        queries.add(body.agent, body.query)
        if body.prior_context:
            prior_context.add(body.agent, body.prior_context)
    material = _Lines()
    for body in bodies["tool_ended"]:
        if not body.error:
            material.add(body.agent.rpartition("/")[2], body.result)
    visible_bodies = [*bodies["text"], *bodies["text_replaced"], *bodies["status_line"]]
    return Observation(
        turn=turn,
        labels=labels or {},
        routed=_is_routed(bodies),
        status=status,
        text=text or visible.answer or visible.lead,
        preamble=visible.lead if visible.answer else "",
        visible_texts=tuple(map(attrgetter("text"), visible_bodies)),
        queries=queries,
        material=material,
        prior_context=prior_context,
        **_outcomes(ended),
        **_notes(bodies),
        **routed_fields,
    )


def _outcomes(ended: Iterable[Any]) -> dict[str, Any]:
    """What became of the agents, as fields of an observation."""
    answers = _Lines()
    failed: dict[str, None] = {}
    with_reservation: dict[str, None] = {}
    for body in ended:
        if body.outcome.kind != "answer":
            failed[body.agent] = None
            continue
        answers.add(body.agent, body.outcome.text)
        if body.outcome.reservation:
            with_reservation[body.agent] = None
    return {
        "answers": answers,
        "failed": tuple(agent for agent in failed if agent not in answers),
        "with_reservation": tuple(with_reservation),
    }


def _notes(bodies: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """What the turn noted of summing up, as fields of an observation."""
    fields: dict[str, Any] = {}
    for body in reversed(bodies["model_ended"]):
        if body.agent == _SUMMARIST:
            fields["summary"] = _submitted_text(body, SUMMARY)
    for body in reversed(bodies["compacted"]):
        if body.done:
            fields["whole"] = body.kept
    return fields


class _Lines(dict[str, str]):
    """Agent -> its texts, a line each."""

    def add(self, agent: str, text: str) -> None:
        if agent in self:
            text = f"{self[agent]}\n{text}"
        self[agent] = text


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


def _submitted_text(body: ModelEnded, job: Job) -> str | None:
    """What a helper model submitted, by its call on the trace, else its words."""
    for call in body.calls:
        if call.name == job.name:
            return str(call.args.get(job.field, call))
    return body.text or None
