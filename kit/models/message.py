"""What all models of the kit make messages of: chunks of tool calls, counts of tokens, and a stream as one message."""

import json
from collections.abc import Iterable, Sequence
from typing import cast

from langchain_core.messages import AIMessage, AIMessageChunk, ToolCall, ToolCallChunk, message_chunk_to_message
from langchain_core.messages.ai import UsageMetadata, add_ai_message_chunks


def call_chunks(calls: Iterable[ToolCall]) -> list[ToolCallChunk]:
    """Returns tool calls as chunks of a stream, each whole."""
    return [
        ToolCallChunk(
            name=call["name"],
            args=json.dumps(call["args"], ensure_ascii=False),
            id=call["id"],
            index=index,
            type="tool_call_chunk",
        )
        for index, call in enumerate(calls)
    ]


def token_count(read: int, wrote: int) -> UsageMetadata:
    """Returns the tokens of a call as LangChain counts them."""
    return UsageMetadata(input_tokens=read, output_tokens=wrote, total_tokens=read + wrote)


def whole_message(chunks: Sequence[AIMessage]) -> AIMessage:
    """Returns the message that a stream adds up to: an empty one of no chunks, the last where it did not come in chunks."""
    parts = [chunk for chunk in chunks if isinstance(chunk, AIMessageChunk)]
    if not parts or len(parts) < len(chunks):
        return chunks[-1] if chunks else AIMessage("")
    return cast("AIMessage", message_chunk_to_message(add_ai_message_chunks(parts[0], *parts[1:])))
