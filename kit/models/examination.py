"""What a model can do of what a turn asks of it: a few short calls, each with a finding and what to do about it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Literal, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage

from kit.core.model import ModelSpec
from kit.core.value import Value
from kit.models.diagnosis import diagnose, status_of
from kit.models.json_routing import JsonRouting, NativeOrJson
from kit.models.message import ending_of, whole_message

SECONDS = 60.0
"""What any one call may take."""
_PLAIN = "What is two plus two? Answer in one short sentence."
_ONE = "What is the weather in Oslo? Call the tool, and say nothing else."
_TWO = "What is the weather in Oslo, and what is it in Rome? Call the tool once for each place, both in one reply."
_WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in one place.",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string"}},
            "required": ["place"],
        },
    },
}


class Finding(Value):
    """One thing that was tried."""

    what: str
    state: Literal["ok", "failed", "skipped"]
    words: str = ""
    """What was seen, or what to do."""
    needed: bool = True
    """Whether a turn needs it of this model."""


async def examine(spec: ModelSpec, model: BaseChatModel) -> AsyncIterator[Finding]:
    """Calls a model five times at most and yields what it can do. Ends early where no call gets through."""
    trials = _Trials(spec, model)
    first = await trials.run(
        "plain call",
        model.ainvoke(_PLAIN),
        lambda reply: "" if reply.text.strip() else "it says nothing",
    )
    if first.what != "URL":
        yield Finding(what="URL", state="ok")
    yield first
    if not trials.replies:
        return
    if spec.stream:
        yield await trials.run(
            "streaming",
            _streamed(model),
            lambda reply: "" if reply.text.strip() else "no text: set `stream: false`",
        )
    else:
        yield Finding(what="streaming", state="skipped", words="`stream: false`", needed=False)
    whole = trials.replies[-1]
    async for finding in _tool_calls(trials):
        yield finding
    if whole.usage_metadata:
        counts = ""
    else:
        counts = "none: tokens and costs are estimates"
    yield Finding(what="usage", state="failed" if counts else "ok", words=counts, needed=False)
    ending = ending_of(whole, spec)
    known = ending not in (None, "cut_off")
    if known:
        words = str(ending)
    else:
        words = "none: an answer that was cut off cannot be told"
    yield Finding(
        what="finish_reason", state="ok" if known else "failed", words=words, needed=False
    )


class _Trials:
    """Calls of one model, and the replies so far."""

    def __init__(self, spec: ModelSpec, model: BaseChatModel):
        self.spec = spec
        self.model = model
        self.replies: list[AIMessage] = []

    async def run(
        self,
        what: str,
        call: Awaitable[AIMessage],
        fault: Callable[[AIMessage], str],
        *,
        needed: bool = True,
    ) -> Finding:
        """Awaits a call; `fault` says what is wrong with its reply, or nothing."""
        try:
            async with asyncio.timeout(SECONDS):
                reply = await call
        except Exception as error:  # a border: each provider's client fails in a way of its own
            reached = self.replies or status_of(error) is not None
            words = diagnose(error, self.spec, self.model)
            return Finding(
                what=what if reached else "URL", state="failed", words=words, needed=needed
            )
        self.replies.append(reply)
        problem = fault(reply)
        return Finding(what=what, state="failed" if problem else "ok", words=problem, needed=needed)


async def _tool_calls(trials: _Trials) -> AsyncIterator[Finding]:
    spec, by_schema = trials.spec, trials.spec.routing == "json_schema"
    if by_schema:
        remedy = "choose another model"
    else:
        remedy = "set `routing: json_schema`"
    bound = trials.model.bind_tools([_WEATHER])
    yield await trials.run(
        "tool call",
        bound.ainvoke(_ONE),
        lambda reply: "" if reply.tool_calls else f"it calls nothing: {remedy}",
    )
    yield await trials.run(
        "several at once",
        bound.ainvoke(_TWO),
        lambda reply: (
            ""
            if len(reply.tool_calls) > 1
            else f"{len(reply.tool_calls)} of 2 calls; for an orchestrator {remedy}"
        ),
        needed=spec.concurrent_tool_calls,
    )
    if not by_schema:
        schema = _by_schema(trials.model).bind_tools([_WEATHER], tool_choice="weather")
        words = "the schema is not kept; leave `routing: native`"
        yield await trials.run(
            "JSON schema",
            schema.ainvoke(_ONE),
            lambda reply: "" if reply.tool_calls else words,
            needed=False,
        )


async def _streamed(model: BaseChatModel) -> AIMessage:
    return whole_message([cast("AIMessage", chunk) async for chunk in model.astream(_PLAIN)])


def _by_schema(model: BaseChatModel) -> JsonRouting:
    if isinstance(model, NativeOrJson):
        inner = model.inner
    else:
        inner = model
    return JsonRouting(
        inner=inner, schema_in="body" if isinstance(model, NativeOrJson) else "options"
    )
