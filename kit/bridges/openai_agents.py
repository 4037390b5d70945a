"""An Agent of the OpenAI Agents SDK as a system."""

import asyncio
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
from kit.core.outcome import Usage
from kit.core.schema.json_value import is_object


@dataclass(frozen=True, slots=True)
class OpenAIAgentBridge:
    """An Agent. Its tools find the Principal in `wrapper.context`.

    The SDK's own traces, which it would post to OpenAI, are switched off for each run.
    """

    agent: Any

    async def ask(self, question: Question) -> AsyncGenerator[Part, None]:
        """Streams a run. Raises BridgeFault for a run that waits for a person, was refused by a
        guardrail, or took too many turns."""
        from agents import (
            InputGuardrailTripwireTriggered,
            MaxTurnsExceeded,
            OutputGuardrailTripwireTriggered,
            RunConfig,
            Runner,
        )

        run = Runner.run_streamed(
            self.agent,
            text_with_context(question),
            context=question.principal,
            run_config=RunConfig(tracing_disabled=True),
        )
        events: Any = run.stream_events()
        spending = Spending()
        try:
            async for event in events:
                for part in _parts_of(event):
                    if not isinstance(part, Piece):
                        for spent in spending.grown_to(_usage(run.context_wrapper.usage)):
                            yield spent
                    yield part
            for spent in spending.grown_to(_usage(run.context_wrapper.usage)):
                yield spent
        except MaxTurnsExceeded as error:
            raise BridgeFault("budget", str(error)) from error
        except (InputGuardrailTripwireTriggered, OutputGuardrailTripwireTriggered) as error:
            raise BridgeFault("refusal", str(error)) from error
        finally:
            # Its work is a task beside this one, and closing the stream alone would wait for it.
            run.cancel()
            await events.aclose()
            if run.run_loop_task is not None:
                await asyncio.gather(run.run_loop_task, return_exceptions=True)
        if run.interruptions:
            raise BridgeFault("insufficient", WAITS)
        yield Reported(text_of(run.final_output))


def openai_agent_bridge(value: object, source: str) -> OpenAIAgentBridge | None:
    """A bridge to an Agent of the OpenAI Agents SDK; None for anything else."""
    if is_a(value, "agents", "Agent"):
        return OpenAIAgentBridge(value)
    return None


def _parts_of(event: Any) -> Iterator[Part]:
    if event.type == "raw_response_event":
        if event.data.type == "response.output_text.delta" and event.data.delta:
            yield Piece(event.data.delta)
        return
    if event.type != "run_item_stream_event":
        return
    item = event.item
    match item.type:
        case "tool_call_item" | "handoff_call_item":
            raw = item.raw_item
            call_id = _field(raw, "call_id") or _field(raw, "id") or ""
            # A tool that OpenAI runs itself has a type and no name.
            name = _field(raw, "name") or _field(raw, "type")
            yield Calling(name, call_id, arguments_of(_field(raw, "arguments")))
        case "tool_call_output_item":
            # An exception of a tool has become text for its model by now: nobody can tell it any more.
            yield Called("tool", call_id=_field(item.raw_item, "call_id"), result=str(item.output))
        case "handoff_output_item":
            call_id = _field(item.raw_item, "call_id")
            yield Called(item.target_agent.name, kind="agent", call_id=call_id)
        case _:
            pass


def _field(raw: Any, name: str) -> Any:
    """A field of an item, which is an object or a dictionary."""
    if is_object(raw):
        return raw.get(name)
    return getattr(raw, name, None)


def _usage(usage: Any) -> Usage:
    calls = usage.requests
    # A model that does not count leaves zeros.
    tells = usage.input_tokens or usage.output_tokens or not calls
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.input_tokens_details.cached_tokens,
        model_calls=calls,
        untold_tokens=int(not tells),
    )
