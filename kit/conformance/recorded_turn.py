"""What a plain loop would have said in a stored turn: the same calls, the same answers of sub-agents and the
same faults, worded by the same model, with nothing of the kit in between."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from langchain_core.messages import AIMessage, convert_to_messages, convert_to_openai_messages

from kit.conformance.gather import JSON, gather_loop
from kit.conformance.scenario import BY_ID, Scenario
from kit.core.bodies.call import AgentEnded, ModelEnded, StoredCall
from kit.core.display.agent_name import words_of_id
from kit.core.event import Event
from kit.core.outcome import Answer, Failure, Outcome, Reason, RoutedOutcome, RoutingDecision, tell
from kit.core.record import TurnRecord
from kit.core.value import Value
from kit.runtime.answer.clauses import (
    Part,
    admits,
    clauses,
    loses,
    makes_claim,
    numbers,
    roots,
    stems,
)
from kit.runtime.bound_model import BoundModel
from kit.stores.model_request import ModelRequest, model_request

if TYPE_CHECKING:
    from kit.stores.turn_store import TurnStore

Fate = Literal["answered", "owned_up", "lost", "silent", "made_up", "raw"]
"""What a text makes of a part. `lost`: it was answered, and the text has nothing of it. `silent`: it failed, and the
text does not say so. `raw`: it failed, and the text of its exception stands in place of an answer."""
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
_AS_TEXT = frozenset[Reason](("refusal", "unanswerable", "low_confidence", "insufficient"))
"""Failures that are a text like any other to a loop that does not look into it."""
_SCENARIOS: Mapping[Reason | None, str] = {
    "timeout": "hangs",
    "refusal": "refuses",
    "unanswerable": "says_nothing",
    "insufficient": "says_nothing",
    "principal_mismatch": "foreign_data",
}


class PlainPart(Value):
    """One call of the recorded decision, and what the plain loop's answer makes of it."""

    agent: str
    fate: Fate

    @property
    def is_lost(self) -> bool:
        """Whether the user neither gets it nor is told in words that it is missing."""
        return self.fate not in ("answered", "owned_up")


class PlainTurn(Value):
    """The same turn as a plain loop ends it."""

    best: bool
    """With what asyncio offers: exceptions kept as results, and a time limit for each child."""
    text: str = ""
    error: str = ""
    """Why it has no text."""
    parts: tuple[PlainPart, ...] = ()


class Recording(Value):
    """What a plain loop takes of a stored turn."""

    messages: tuple[JSON, ...] = ()
    """What the orchestrator's model was sent first."""
    decision: JSON = {}
    """Its reply, with the calls."""
    queries: Mapping[str, str] = {}
    """Agent that was called -> what it was asked."""
    outcomes: Mapping[str, Outcome] = {}
    gap: str = ""
    """Why no plain loop can be played over it; empty where one can."""


class ChildError(RuntimeError):
    """What a sub-agent raised, as the trace has it."""


class StillWaiting(Exception):
    """Stands for a wait without an end, which nobody has to sit through again."""


def recording_of(store: "TurnStore", turn: TurnRecord, root: str) -> Recording:
    """Reads what a plain loop needs of a turn; `root` is the id of its orchestrator."""
    events = store.events(turn.id, turn.principal)
    span_id, decision = _decision(events, root)
    request = model_request(store, turn, span_id, events)
    if decision is None or request is None:
        return Recording(gap="its orchestrator asked nobody, so there is nothing to gather")
    if request.gap:
        return Recording(gap="what its orchestrator's model was sent is not stored whole")
    outcomes: dict[str, Outcome] = {}
    for event in events:
        if isinstance(event.body, AgentEnded):
            outcomes[event.body.outcome.agent] = event.body.outcome
    queries: dict[str, str] = {}
    for call in decision.calls:
        queries[_agent(call.name)] = str(call.args.get("query", ""))
    return Recording(
        messages=tuple(_messages(request)),
        decision={
            "role": "assistant",
            "content": decision.text,
            "tool_calls": list(_tool_calls(decision.calls)),
        },
        queries=queries,
        outcomes=outcomes,
        gap=_what_lacks(queries, outcomes),
    )


def _decision(events: Sequence[Event], root: str) -> tuple[str, ModelEnded | None]:
    """Returns the first reply of the orchestrator's model that calls somebody, and its span."""
    for event in events:
        if isinstance(event.body, ModelEnded) and event.body.agent == root and event.body.calls:
            return event.span_id, event.body
    return "", None


def _what_lacks(queries: Mapping[str, str], outcomes: Mapping[str, Outcome]) -> str:
    for agent in queries:
        outcome = outcomes.get(agent)
        if outcome is None:
            return f"{words_of_id(agent)} was called and never run, so no answer of it is stored"
        if isinstance(outcome, Failure) and outcome.reason == "principal_mismatch":
            return (
                f"{words_of_id(agent)} was sent somebody else's data; that was dropped before it was stored, "
                "and a plain loop would have read it"
            )
    return ""


def _agent(tool: str) -> str:
    return tool.removeprefix("ask_")


def _messages(request: ModelRequest) -> Iterator[JSON]:
    yield {"role": "system", "content": request.system}
    for message in (*request.history, *request.messages):
        content: JSON = {"role": _ROLES[message.role], "content": message.text}
        if message.calls:
            content["tool_calls"] = list(_tool_calls(message.calls))
        yield content


def _tool_calls(calls: Sequence[StoredCall]) -> Iterator[JSON]:
    for number, call in enumerate(calls, 1):
        function = {"name": call.name, "arguments": json.dumps(call.args)}
        yield {"id": f"call-{number}", "type": "function", "function": function}


async def play_plain(
    recording: Recording, composer: BoundModel, *, best: bool, seconds: float
) -> PlainTurn:
    """Plays a plain loop over a recording without a gap. Its answer is worded by `composer`, which alone is called;
    no wait of a sub-agent is waited for again. After `seconds` the user has given up."""
    is_first = True

    async def call_model(messages: list[JSON]) -> JSON:
        nonlocal is_first
        if is_first:
            is_first = False
            return recording.decision
        if composer.gate is not None:
            await composer.gate.enter(sum(len(str(message)) for message in messages))
        reply: AIMessage = await composer.runnable.ainvoke(convert_to_messages(messages))
        return convert_to_openai_messages(reply)

    async def call_child(name: str, arguments: JSON) -> str:
        return _child_said(recording.outcomes[_agent(name)], best=best)

    text = ""
    error = ""
    try:
        async with asyncio.timeout(seconds):
            text = await gather_loop(list(recording.messages), call_model, call_child, best=best)
    except StillWaiting as waiting:
        error = f"It was still waiting for {waiting} when the user gave up."
    except Exception as raised:  # that it raises, and what, is what is shown
        error = f"It raised {type(raised).__name__}: {raised}"
    return PlainTurn(best=best, text=text, error=error, parts=parts_in(text, recording))


def _child_said(outcome: Outcome, *, best: bool) -> str:
    """Returns what a sub-agent returned, or raises what a loop around it meets."""
    if isinstance(outcome, Answer):
        return tell(outcome, with_components=True)
    if outcome.reason == "timeout" and best:
        raise TimeoutError
    if outcome.reason == "timeout":
        raise StillWaiting(words_of_id(outcome.agent))
    if outcome.reason in _AS_TEXT:
        return outcome.suggestion or ""
    raise ChildError(outcome.detail)


def parts_in(text: str, recording: Recording) -> tuple[PlainPart, ...]:
    """Says what a text makes of each call of a recording, by the checks that every answer of the kit goes through."""
    answers: dict[str, str] = {}
    for agent in recording.queries:
        outcome = recording.outcomes[agent]
        if isinstance(outcome, Answer):
            answers[agent] = outcome.text
    parts: list[PlainPart] = []
    for agent in recording.queries:
        outcome = recording.outcomes[agent]
        if isinstance(outcome, Failure):
            fate = _fate_of_failure(text, outcome, recording.queries, answers)
        else:
            siblings = [answer for name, answer in answers.items() if name != agent]
            stock = [words_of_id(agent), *recording.queries.values()]
            is_lost = not text or loses(answers[agent], text, stock, siblings)
            fate = "lost" if is_lost else "answered"
        parts.append(PlainPart(agent=agent, fate=fate))
    return tuple(parts)


def _fate_of_failure(
    text: str, failure: Failure, queries: Mapping[str, str], answers: Mapping[str, str]
) -> Fate:
    agent = failure.agent
    # Whoever declined said so in words of its own.
    if failure.suggestion and failure.suggestion in text:
        return "owned_up"
    if f"Error: {ChildError(failure.detail)!r}" in text or f"Error: {TimeoutError()!r}" in text:
        return "raw"
    others = [query for name, query in queries.items() if name != agent]
    part = Part(agent, words_of_id(agent), roots(queries[agent]) - roots(" ".join(others)))
    read = clauses(text)
    if admits(read, part, alone=len(queries) == 1):
        return "owned_up"
    sources = "\n".join([*answers.values(), *queries.values()])
    # A figure that nobody delivered was made up for what failed.
    if makes_claim(read, part, stems("\n".join(answers.values()))) or numbers(text) - numbers(
        sources
    ):
        return "made_up"
    return "silent"


def scenario_of(decision: RoutingDecision) -> Scenario:
    """Returns the scenario of the table that comes nearest to what went wrong in a turn."""
    failures: list[RoutedOutcome] = []
    for outcome in decision.outcomes:
        if outcome.result in ("failure", "data_error"):
            failures.append(outcome)
    if len(failures) > 1 and len(failures) == len(decision.outcomes):
        return BY_ID["all_fail"]
    for outcome in failures:
        return BY_ID[_SCENARIOS.get(outcome.reason, "raises")]
    if decision.cap_behavior == "over":
        return BY_ID["over_cap"]
    if decision.left_out.count:
        return BY_ID["skips_one"]
    return BY_ID["all_well"]
