"""The turn that every framework plays, and the models that play it: stubs that answer at once and
never fail.

A turn is one orchestrator call that asks N sub-agents, the sub-agents at the same time, and one
call that joins their answers. A sub-agent makes one model call; with a tool of its own two, and a
tool call between them.
"""

import asyncio
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

ORCH_PROMPT = (
    "You are the orchestrator. Ask one sub-agent for each part of the message, then "
    "join their answers into one."
)
SUB_PROMPT = (
    "You are the sub-agent for domain {id}. Answer the request, and nothing outside your domain."
)
DESC = "Answers questions of domain {id}."
LOOKUP_DESC = "Reads the value of a key."
History = Sequence[tuple[str, str]]
"""(role, text) pairs, oldest first; a role is "user" or "assistant"."""
_call_ids = itertools.count()


class Adapter(Protocol):
    """One framework with the agents of a Spec, ready for any number of turns at once."""

    async def turn(self, text: str, history: History = ()) -> str:
        """The composed answer to a message after `history`."""
        ...


@dataclass(frozen=True)
class Spec:
    """What is played."""

    n: int = 2
    """Sub-agents, all of them asked in every turn."""
    sub_tool: bool = False
    """Whether each sub-agent calls a tool before it answers."""
    chunks: int = 0
    """Chunks that a model call is streamed in; 0 is a whole reply."""
    pause: float = 0.0
    """Seconds a model call sleeps; at 0 it still yields to the loop, as a network would."""
    store: str = ":memory:"
    """Where a framework that keeps its turns is to keep them."""
    timeout: float | None = None
    """Seconds a sub-agent has; None is the framework's own choice."""

    @property
    def ids(self) -> list[str]:
        return [chr(ord("a") + place) for place in range(self.n)]


@dataclass(frozen=True)
class Call:
    """A tool call of a model."""

    id: str
    name: str
    args: dict[str, Any]

    @property
    def json(self) -> str:
        return json.dumps(self.args)


@dataclass(frozen=True)
class Reply:
    """What a model says: a text, or calls."""

    text: str = ""
    calls: tuple[Call, ...] = ()


async def reply(
    spec: Spec,
    sid: str,
    request: str,
    results: Sequence[str],
    argument: str = "request",
    **more: Any,
) -> Reply:
    """What the model of sub-agent `sid` says, or that of the orchestrator where `sid` is "".

    `results` are those of its latest calls, `argument` is how the framework's tools name the
    request, `more` goes with it.
    """
    await asyncio.sleep(spec.pause)
    if sid:
        if results or not spec.sub_tool:
            return Reply(_answer(sid, request, results))
        return Reply(calls=(Call(_call_id(), "lookup", {"key": sid}),))
    if results:
        return Reply(" | ".join(results))
    return Reply(
        calls=tuple(Call(_call_id(), f"ask_{i}", {argument: request, **more}) for i in spec.ids)
    )


async def submission(spec: Spec, tool: str, field: str) -> Reply:
    """What a model hands in that is asked for something else: a summary of old turns, or what a
    sub-agent should know of them."""
    await asyncio.sleep(spec.pause)
    return Reply(
        calls=(Call(_call_id(), tool, {field: "They spoke of points, offers and receipts."}),)
    )


def deltas(said: Reply, chunks: int) -> Iterator[tuple[int | None, str]]:
    """The reply in `chunks` pieces, at least one a call: (None, piece of the text), or (place of a
    call, piece of its JSON)."""
    if not said.calls:
        yield from ((None, piece) for piece in _pieces(said.text, chunks))
    for place, call in enumerate(said.calls):
        yield from (
            (place, piece) for piece in _pieces(call.json, max(1, chunks // len(said.calls)))
        )


async def lookup(key: str) -> str:
    """The tool of a sub-agent."""
    return f"V:{key}"


def is_whole(spec: Spec, text: str, answer: str) -> bool:
    """Whether an answer joins the results of all sub-agents to this message, and of no other."""
    return sorted(answer.split(" | ")) == sorted(
        _answer(i, text, [f"V:{i}"] if spec.sub_tool else []) for i in spec.ids
    )


def long_history(length: int) -> list[tuple[str, str]]:
    """So many messages of about 200 characters, user and assistant in turn."""
    words = "points offers receipts rewards coffee tea bread milk " * 4
    return [
        ("assistant" if place % 2 else "user", f"message {place} {words.strip()}")
        for place in range(length)
    ]


def _answer(sid: str, request: str, values: Sequence[str]) -> str:
    return ":".join(("R", sid, request, *values))


def _pieces(text: str, count: int) -> Iterator[str]:
    return (text[i * len(text) // count : (i + 1) * len(text) // count] for i in range(count))


def _call_id() -> str:
    return f"call_{next(_call_ids)}"
