"""Why an agent ran out of time, read from its spans, and what helps against that; more time is not on the menu."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

from kit.core.trace import Span, Trace
from kit.core.value import Value

Cause = Literal["tool", "model", "reasoning", "unknown"]
"""A slow tool; one slow model call; many model calls, none of which is the slow one; or nothing that spans show."""


class Remedy(Value):
    """A change of configuration, with the keys it is made by."""

    says: str
    where: Literal["card", "deck"]
    keys: tuple[str, ...]
    """Dotted, as in the file; <...> stands for a name of the reader's own."""

    def __str__(self) -> str:
        return f"{self.says} ({self.where}: {', '.join(self.keys)})"


def _remedy(says: str, where: Literal["card", "deck"], *keys: str) -> Remedy:
    return Remedy(says=says, where=where, keys=keys)


_TOPOLOGY = "topologies.<surface>.<agent>"
_RACE = (f"{_TOPOLOGY}.kind: race", f"{_TOPOLOGY}.members")
_PIPELINE = (f"{_TOPOLOGY}.kind: pipeline", f"{_TOPOLOGY}.members", f"{_TOPOLOGY}.bar")
_TO_READ = ("handoff.closed", "handoff.max_query_tokens", "handoff.fields.<field>.max_tokens")
_MEND = "mend the tool, not the agent, and cut its calls off while there is time to answer from the rest"
STOPGAP = _remedy("until then, race it with a quick twin", "deck", *_RACE)
REMEDIES: Mapping[Cause, tuple[Remedy, ...]] = {
    "tool": (
        _remedy(_MEND, "card", "tool_config.<tool>.timeout_ms"),
        _remedy("until then, race it with a twin that does without the tool", "deck", *_RACE),
    ),
    "model": (
        _remedy("give it less to read", "card", *_TO_READ),
        _remedy("let it think less", "card", "tuning.reasoning_effort"),
        _remedy(
            "let a faster model take over a call that is late",
            "card",
            "fallback_model",
            "policy.model_time_ms",
        ),
        STOPGAP,
    ),
    "reasoning": (
        _remedy("split it: a quick draft, gone over only where it is unsure", "deck", *_PIPELINE),
        STOPGAP,
    ),
    "unknown": (),
}
"""The menu: an agent gets less to read or to do, or a faster one stands by."""
NO_REMEDY = "look at the agent's own code, or at where it runs"


class Diagnosis(Value):
    """Where the time of one invocation went that ran out of it."""

    agent: str
    cause: Cause
    slowest: str = ""
    """The tool, or the model, that most of it went to; empty where it is neither."""
    seconds: float
    """Spent in what is the cause; calls at the same time count once."""
    budget: float
    """Seconds the whole invocation had."""
    calls: int
    """Model calls it made."""

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What helps against this cause."""
        return REMEDIES[self.cause]

    @property
    def where(self) -> str:
        """What the time went to, for a sentence about the agent."""
        within = {
            "tool": f"its tools, most of all {self.slowest}",
            "model": f"one call of the model {self.slowest}",
            "reasoning": f"long reasoning, {self.calls} model calls",
            "unknown": "something that its spans do not show",
        }[self.cause]
        return f"ran out of time in {within}: {self.seconds:.2f} of {self.budget:.2f} s"

    def __str__(self) -> str:
        return f"{self.where}; what helps: {'; '.join(map(str, self.remedies)) or NO_REMEDY}"


def diagnose(trace: Trace, span: Span) -> Diagnosis | None:
    """What took the time of an agent's span that ended in a time-out; None for any other span.

    Whatever took most of it is to blame: tools, model calls, or neither. Of the model calls it is
    one of them where that took at least half of their time, else it is their number; a call that
    failed and the one in its place are one. Whether a single call was slow or thought for long, a
    span cannot tell. An agent whose time ran out because that of an agent below it did has no
    diagnosis of its own.
    """
    if not span.timed_out:
        return None
    below = _below(trace, span)
    if any(part.timed_out for part in below):
        return None
    tools = [part for part in below if part.kind == "tool"]
    models = [part for part in below if part.kind == "model"]
    in_tools = _busy_seconds(tools)
    in_models = _busy_seconds(models)
    idle = span.seconds - _busy_seconds([*tools, *models])
    diagnosis_of = partial(Diagnosis, agent=span.agent, budget=span.seconds, calls=len(models))
    if idle >= max(in_tools, in_models):
        return diagnosis_of(cause="unknown", seconds=idle)
    if in_tools >= in_models:
        # Calls of one tool may overlap, so that their seconds do not add up.
        calls: dict[str, list[Span]] = {}
        for part in tools:
            calls.setdefault(part.name, []).append(part)
        slowest = max(calls, key=lambda name: _busy_seconds(calls[name]))
        return diagnosis_of(cause="tool", slowest=slowest, seconds=in_tools)
    longest = max(_rounds(models), key=lambda tries: sum(part.seconds for part in tries))
    seconds = sum(part.seconds for part in longest)
    # No call took half of it: the model was asked too often, not too slowly.
    if 2 * seconds < in_models:
        return diagnosis_of(cause="reasoning", seconds=in_models)
    slowest = max(longest, key=lambda part: part.seconds)
    return diagnosis_of(cause="model", slowest=str(slowest.attributes["model"]), seconds=seconds)


def diagnoses(trace: Trace) -> tuple[tuple[Span, Diagnosis], ...]:
    """Every agent's span of a turn that ended in a time-out of its own, with the diagnosis."""
    results: list[tuple[Span, Diagnosis]] = []
    for span in trace.spans:
        diagnosis = diagnose(trace, span)
        if diagnosis is not None:
            results.append((span, diagnosis))
    return tuple(results)


def _below(trace: Trace, span: Span) -> list[Span]:
    spans: list[Span] = []
    for child in trace.children(span.id):
        spans += [child, *_below(trace, child)]
    return spans


def _rounds(models: Sequence[Span]) -> list[list[Span]]:
    """Model calls, each with those that failed before it and were made again."""
    rounds: list[list[Span]] = [[]]
    for model in models:
        rounds[-1].append(model)
        # After one that failed the fallback model is asked the same, which is no further thought.
        if model.status != "error":
            rounds.append([])
    if rounds[-1]:
        return rounds
    return rounds[:-1]


def _busy_seconds(spans: Sequence[Span]) -> float:
    """Seconds in which at least one of these ran."""
    busy = 0.0
    until = 0.0
    for span in sorted(spans, key=lambda span: span.started):
        busy += max(0.0, span.ended - max(span.started, until))
        until = max(until, span.ended)
    return busy
