"""An Agent of Pydantic AI as a system."""

from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import Any

from kit.bridges.framework import (
    WAITS,
    Spending,
    arguments_of,
    is_a,
    text_of,
    text_with_context,
)
from kit.bridges.part import BridgeFault, Called, Calling, Part, Piece, Question, Reported
from kit.core.context import Principal
from kit.core.outcome import Usage


@dataclass(frozen=True, slots=True)
class PydanticAgentBridge:
    """An Agent. Its tools find the principal in `ctx.metadata`, and in `ctx.deps` where the
    agent's `deps_type` is kit's Principal."""

    agent: Any

    async def ask(self, question: Question) -> AsyncGenerator[Part, None]:
        """Streams a run. Raises BridgeFault for a run that waits for a person, or over its own limits."""
        from pydantic_ai.exceptions import UsageLimitExceeded  # loaded already, with the agent

        principal = question.principal
        deps = None
        if self.agent.deps_type is Principal:
            deps = principal
        spending = Spending()
        try:
            async with self.agent.run_stream_events(
                text_with_context(question),
                deps=deps,
                metadata={"tenant_id": principal.tenant_id, "user_id": principal.user_id},
            ) as events:
                async for event in events:
                    for part in _parts_of(event):
                        if isinstance(part, Calling | Called | Reported):
                            # The model call before it has ended, and was counted.
                            for spent in spending.grown_to(_usage(events.usage)):
                                yield spent
                        yield part
        except UsageLimitExceeded as error:
            raise BridgeFault("budget", str(error)) from error


def pydantic_agent_bridge(value: object, source: str) -> PydanticAgentBridge | None:
    """A bridge to an Agent of Pydantic AI; None for anything else."""
    if is_a(value, "pydantic_ai", "AbstractAgent"):
        return PydanticAgentBridge(value)
    return None


def _parts_of(event: Any) -> Iterator[Part]:
    """The parts of one event, told apart by their kinds: the classes are the framework's."""
    match event.event_kind:
        case "part_start" if event.part.part_kind == "text" and event.part.content:
            yield Piece(event.part.content)
        case "part_delta" if event.delta.part_delta_kind == "text" and event.delta.content_delta:
            yield Piece(event.delta.content_delta)
        case "function_tool_call":
            call = event.part
            yield Calling(call.tool_name, call.tool_call_id, arguments_of(call.args))
        case "function_tool_result":
            result = event.part
            text = text_of(result.content)
            fault = None
            if result.outcome != "success":
                fault = text or result.outcome
            yield Called(result.tool_name, call_id=result.tool_call_id, result=text, fault=fault)
        case "agent_run_result":
            output = event.result.output
            if is_a(output, "pydantic_ai", "DeferredToolRequests"):
                raise BridgeFault("insufficient", WAITS)
            yield Reported(text_of(output))
        case _:
            pass


def _usage(usage: Any) -> Usage:
    cost = None
    if usage.cost is not None:
        cost = float(usage.cost)
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cache_read_tokens,
        model_calls=usage.requests,
        cost=cost,
        untold_tokens=int(bool(usage.unmeasured_requests)),
    )
