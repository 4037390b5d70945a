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
from kit.models.message import ending_of, usage_of, whole_message

SECONDS = 60.0
"""What any one call may take."""
_PLAIN = "What is two plus two? Answer in one short sentence."
_ONE_CALL = "What is the weather in Oslo? Call the tool, and say nothing else."
_TWO_CALLS = (
    "What is the weather in Oslo, and what is it in Rome? "
    "Call the tool once for each place, both in one reply."
)
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

    name: str
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
    if first.name != "URL":
        yield Finding(name="URL", state="ok")
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
        yield Finding(name="streaming", state="skipped", words="`stream: false`", needed=False)
    whole = trials.replies[-1]
    async for finding in _tool_calls(trials):
        yield finding
    counts = ""
    if usage_of(whole, spec, 0, "").estimated:
        counts = "none that can be" if whole.usage_metadata else "none"
        counts += ": tokens and costs are estimates"
    yield Finding(name="usage", state="failed" if counts else "ok", words=counts, needed=False)
    ending = ending_of(whole, spec)
    if ending in (None, "cut_off"):
        words = "none: an answer that was cut off cannot be told"
        yield Finding(name="finish_reason", state="failed", words=words, needed=False)
    else:
        yield Finding(name="finish_reason", state="ok", words=str(ending), needed=False)


class _Trials:
    """Calls of one model, and the replies so far."""

    def __init__(self, spec: ModelSpec, model: BaseChatModel):
        self.spec = spec
        self.model = model
        self.replies: list[AIMessage] = []

    async def run(
        self,
        name: str,
        call: Awaitable[AIMessage],
        fault: Callable[[AIMessage], str],
        *,
        needed: bool = True,
    ) -> Finding:
        """Awaits a call; `fault` says what is wrong with its reply, or nothing."""
        try:
            async with asyncio.timeout(SECONDS):
                reply = await call
        except Exception as error:
            # A border: each provider's client fails in a way of its own.
            reached = self.replies or status_of(error) is not None
            words = diagnose(error, self.spec, self.model)
            # The first call that gets no status says nothing of what it was to try.
            return Finding(
                name=name if reached else "URL", state="failed", words=words, needed=needed
            )
        self.replies.append(reply)
        problem = fault(reply)
        return Finding(name=name, state="failed" if problem else "ok", words=problem, needed=needed)


async def _tool_calls(trials: _Trials) -> AsyncIterator[Finding]:
    remedy = "choose another model"
    if trials.spec.routing != "json_schema":
        schema = _by_schema(trials.model).bind_tools([_WEATHER], tool_choice="weather")
        # First, for what is advised about calls depends on it.
        kept = await trials.run(
            "JSON schema",
            schema.ainvoke(_ONE_CALL),
            lambda reply: "" if reply.tool_calls else "the schema is not kept",
            needed=False,
        )
        yield kept
        if kept.state == "ok":
            remedy = "set `routing: json_schema`"
    bound = trials.model.bind_tools([_WEATHER])
    yield await trials.run(
        "tool call", bound.ainvoke(_ONE_CALL), lambda reply: _why_no_call(reply, remedy)
    )
    yield await trials.run(
        "several at once",
        bound.ainvoke(_TWO_CALLS),
        lambda reply: (
            ""
            if len(reply.tool_calls) > 1
            else f"{len(reply.tool_calls)} of 2 calls; for an orchestrator {remedy}"
        ),
        needed=trials.spec.concurrent_tool_calls,
    )


def _why_no_call(reply: AIMessage, remedy: str) -> str:
    if reply.tool_calls:
        return ""
    if reply.invalid_tool_calls:
        return f"the arguments of its call are no JSON: {remedy}"
    return f"it calls nothing: {remedy}"


async def _streamed(model: BaseChatModel) -> AIMessage:
    return whole_message([cast("AIMessage", chunk) async for chunk in model.astream(_PLAIN)])


def _by_schema(model: BaseChatModel) -> JsonRouting:
    if isinstance(model, NativeOrJson):
        return JsonRouting(inner=model.inner, schema_in="body")
    return JsonRouting(inner=model)
