"""What scorers may know of a turn, folded from its events, live or stored. It holds no times, so equal turns are equal."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from kit.core.event import Event, ModelEnded
from kit.core.outcome import RoutingDecision
from kit.core.transcript import transcript
from kit.core.value import Value
from kit.runtime.job import SUMMARY, Job


class Observation(Value):
    """One turn, as it was seen from outside. Agents have the names of the case file."""

    turn: int = 0
    """Place of the turn in its case."""
    status: str = "ok"
    text: str = ""
    """The answer as the user has it."""
    preamble: str = ""
    shown: tuple[str, ...] = ()
    """Every text a person could read at some moment, replaced ones and progress lines too."""
    invoked: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    """Called, but over the cap: never run."""
    refused: tuple[str, ...] = ()
    """Called, but stopped by a guard."""
    emitted: int = 0
    """Calls the orchestrator's model made."""
    reported: int = 0
    """Intents it said it saw."""
    asked: Mapping[str, str] = {}
    """Agent -> the words it was given; those of several calls in lines."""
    answers: Mapping[str, str] = {}
    failed: tuple[str, ...] = ()
    """Ended in a failure and never answered."""
    reserved: tuple[str, ...] = ()
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


def observe(events: Iterable[Event], turn: int = 0, names: Mapping[str, str] | None = None) -> Observation:
    """Folds the events of one turn. `names` maps card ids to those of the case file, where they differ."""
    events = tuple(events)
    by: dict[str, list[Any]] = defaultdict(list)
    for event in events:
        by[event.body.kind].append(event.body)
    said, done = transcript(events), by["completed"]
    routing = by["routing"][-1].decision if by["routing"] else None
    own = {(outcome.agent, outcome.call_id) for outcome in routing.outcomes} if routing else None
    # agents further down are left out: what became of them is told by the agent that asked them
    begun = [body for body in by["agent_started"] if own is None or (body.agent, body.call_id) in own]
    ended = [(e.agent, e.outcome) for e in by["agent_ended"] if own is None or (e.agent, e.outcome.call_id) in own]
    answered = [(agent, outcome) for agent, outcome in ended if outcome.kind == "answer"]
    well = {agent for agent, _ in answered}
    tools = [(body.agent.rpartition("/")[2], body.result) for body in by["tool_ended"] if not body.error]
    seen = Observation(
        turn=turn,
        status=done[0].status if done else "running",
        text=(done[0].text if done else "") or said.answer or said.lead,
        preamble=said.lead if said.answer else "",
        shown=tuple(body.text for kind in ("text", "text_replaced", "status_line") for body in by[kind]),
        asked=_lines((body.agent, body.query) for body in begun),
        answers=_lines((agent, outcome.text) for agent, outcome in answered),
        failed=tuple(dict.fromkeys(agent for agent, _ in ended if agent not in well)),
        reserved=tuple(dict.fromkeys(agent for agent, outcome in answered if outcome.reservation)),
        material=_lines(tools),
        prior_context=_lines((body.agent, body.prior_context) for body in begun if body.prior_context),
        summary=next((_submitted(body, SUMMARY) for body in by["model_ended"] if body.agent == SUMMARY.field), None),
        whole=next((body.kept for body in by["compacted"] if body.done), 0),
        acknowledged=by["acknowledged"][-1].path if by["acknowledged"] else None,
        **_routed(routing, by),
    )
    return _renamed(seen, names) if names else seen


def _routed(routing: RoutingDecision | None, by: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Who was called; of a turn that never came to its routing event, who was seen to start."""
    if routing is None:
        return {"invoked": tuple(dict.fromkeys(body.agent for body in by["agent_started"]))}
    return {
        "invoked": routing.invoked,
        "dropped": routing.dropped,
        "refused": routing.refused,
        "emitted": routing.intent_count,
        "reported": routing.reported_intents,
    }


def _lines(told: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for agent, text in told:
        found[agent] = f"{found[agent]}\n{text}" if agent in found else text
    return found


def _submitted(ended: ModelEnded, job: Job) -> str | None:
    """What a helper model submitted, read back from its call on the trace, `name({arguments})`."""
    for call in ended.calls:
        if call.startswith(f"{job.name}("):
            try:
                return str(ast.literal_eval(call[len(job.name) + 1 : -1])[job.field])
            except (ValueError, SyntaxError, KeyError, TypeError):
                return call
    return ended.text or None


def _renamed(seen: Observation, names: Mapping[str, str]) -> Observation:
    changed: dict[str, Any] = {}
    for field in ("invoked", "dropped", "refused", "failed", "reserved"):
        changed[field] = tuple(names.get(agent, agent) for agent in getattr(seen, field))
    for field in ("asked", "answers", "material", "prior_context"):
        changed[field] = {names.get(agent, agent): text for agent, text in getattr(seen, field).items()}
    return seen.model_copy(update=changed)
