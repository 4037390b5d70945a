"""Messages as models of the kit read and make them: of plain text, of a stream, with tool calls and
counts of tokens.

Those of plain text are made without LangChain's validation: what goes in is a `str` by its type.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, cast

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolCallChunk,
    ToolMessage,
    message_chunk_to_message,
)
from langchain_core.messages.ai import UsageMetadata, add_ai_message_chunks

from kit.core.model import ModelSpec
from kit.core.outcome import Usage
from kit.core.value import builder

M = TypeVar("M", bound=BaseMessage)


def human_text(text: str) -> HumanMessage:
    """Returns `HumanMessage(text)`."""
    return _made(HumanMessage, "human", text, {"content"})


def system_text(text: str) -> SystemMessage:
    """Returns `SystemMessage(text)`."""
    return _made(SystemMessage, "system", text, {"content"})


def tool_text(
    text: str, call_id: str, *, failed: bool = False, name: str | None = None
) -> ToolMessage:
    """Returns a tool's message, whose status says whether the tool failed."""
    return _made(
        ToolMessage,
        "tool",
        text,
        {"content", "name", "tool_call_id", "status"},
        name,
        tool_call_id=call_id,
        artifact=None,
        status="error" if failed else "success",
    )


def _made(
    kind: type[M],
    role: str,
    text: str,
    fields_set: set[str],
    name: str | None = None,
    **extra_fields: Any,
) -> M:
    # A turn of three sub-agents makes fourteen. By their classes they take 5 and 9 microseconds each
    # in place of 2.5: sixty in all, a twentieth of the turn.
    message = object.__new__(kind)
    fields: dict[str, Any] = {"content": text, "type": role, "name": name, "id": None}
    fields |= {"additional_kwargs": {}, "response_metadata": {}, **extra_fields}
    object.__setattr__(message, "__dict__", fields)
    object.__setattr__(message, "__pydantic_fields_set__", fields_set)
    object.__setattr__(message, "__pydantic_extra__", {})
    object.__setattr__(message, "__pydantic_private__", None)
    return message


def call_chunks(calls: Iterable[ToolCall]) -> list[ToolCallChunk]:
    """Returns tool calls as chunks of a stream, each whole."""
    tool_call_chunks: list[ToolCallChunk] = []
    for index, call in enumerate(calls):
        tool_call_chunks.append(
            ToolCallChunk(
                name=call["name"],
                args=json.dumps(call["args"], ensure_ascii=False),
                id=call["id"],
                index=index,
                type="tool_call_chunk",
            )
        )
    return tool_call_chunks


def chosen_tool(choice: Any) -> str | None:
    """Returns a tool choice in one of the usual spellings as a tool's name, "any", "none" or None (free)."""
    match choice:
        case None | "auto":
            return None
        case False:
            return "none"
        case True | "required":
            return "any"
        case {"function": {"name": str(name)}} | {"name": str(name)} | str(name):
            return name
        case _:
            return None


def token_count(read: int, wrote: int) -> UsageMetadata:
    """Returns the tokens of a call as LangChain counts them."""
    return UsageMetadata(input_tokens=read, output_tokens=wrote, total_tokens=read + wrote)


def whole_message(chunks: Sequence[AIMessage]) -> AIMessage:
    """Returns the message that a stream adds up to: an empty one of no chunks, the last where it
    did not come in chunks."""
    parts: list[AIMessageChunk] = []
    for chunk in chunks:
        if isinstance(chunk, AIMessageChunk):
            parts.append(chunk)
    if not parts or len(parts) < len(chunks):
        if chunks:
            return chunks[-1]
        return AIMessage("")
    return cast("AIMessage", message_chunk_to_message(add_ai_message_chunks(parts[0], *parts[1:])))


CUT_OFF = frozenset(
    (
        "length",
        "max_tokens",
        "max_output_tokens",
        "MAX_TOKENS",
        "incomplete",
        # A provider's filter ends a reply where it stands, in the middle of a sentence as often as not.
        "content_filter",
        "cut_off",
    )
)
"""Why a reply ended that is not whole, in the words of the providers; the last is the kit's own."""


def ending_of(message: AIMessage, spec: ModelSpec) -> str | None:
    """Returns why a reply ended; `cut_off` where its API owes a reason and gave none: the stream ended early.

    Raises ValueError where such a stream held nothing: that is no reply.
    """
    facts: dict[str, Any] = message.response_metadata
    ending = facts.get("finish_reason") or facts.get("stop_reason") or facts.get("done_reason")
    if ending is not None or spec.provider != "openai":
        return ending
    if spec.api == "responses" and facts.get("status"):
        return facts["status"]
    if not message.content and not message.tool_calls:
        raise ValueError("the reply holds neither text nor calls")
    return "cut_off"


def reasoning_of(message: BaseMessage) -> str:
    """Returns what a message or a piece of one says of the model's reasoning: a field beside its
    content, or blocks in it."""
    reply: Any = message
    aside = reply.additional_kwargs.get("reasoning_content")
    texts: list[Any] = [aside] if aside else []
    # Most replies are plain text, whose content is no list of blocks.
    blocks: Any = reply.content
    if not isinstance(blocks, list):
        blocks = ()
    for block in cast("Iterable[Any]", blocks):
        match block:
            case {"type": "reasoning", "summary": [*parts]}:
                texts += [part.get("text") for part in cast("list[dict[str, Any]]", parts)]
            case {"type": "reasoning", "reasoning": str(text)} | {
                "type": "thinking",
                "thinking": str(text),
            }:
                texts.append(text)
            case _:
                pass
    if not texts:
        return ""
    return "".join(text for text in texts if isinstance(text, str))


_new_usage = builder(Usage)
CHARACTERS = 4
"""Of a token, where nobody counted."""
MOST_TOKENS = 10**9
"""Tokens that a model may report for one call; what else it says of its usage is not believed."""


def usage_of(message: AIMessage, spec: ModelSpec, size: int, text: str) -> Usage:
    """Returns what a whole reply cost; `size` is the estimate of what was read, `text` what was
    written beside calls."""
    counts = message.usage_metadata
    if counts is None or not (
        0 <= counts["input_tokens"] < MOST_TOKENS and 0 <= counts["output_tokens"] < MOST_TOKENS
    ):
        wrote = len(text) + (len(str(message.tool_calls)) if message.tool_calls else 0)
        return estimate(spec, size, wrote)
    read = counts["input_tokens"]
    wrote = counts["output_tokens"]
    cached = counts.get("input_token_details", {}).get("cache_read", 0) or 0
    reasoning = counts.get("output_token_details", {}).get("reasoning", 0) or 0
    cached = min(max(cached, 0), read)
    reasoning = min(max(reasoning, 0), wrote)
    return _new_usage(
        input_tokens=read,
        output_tokens=wrote,
        cached_tokens=cached,
        model_calls=1,
        cost=spec.price(read, wrote, cached, reasoning),
    )


def estimate(spec: ModelSpec, size: int, characters: int) -> Usage:
    """Returns what a call costs that reads so many tokens and writes so many characters."""
    wrote = -(-characters // CHARACTERS)
    return _new_usage(
        input_tokens=size,
        output_tokens=wrote,
        model_calls=1,
        cost=spec.price(size, wrote),
        estimated=True,
    )
