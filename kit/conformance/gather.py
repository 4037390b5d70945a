"""A plain loop as one writes it by hand: all calls of a reply in one `asyncio.gather`, and no word on what failed."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

JSON = dict[str, Any]
CallModel = Callable[[list[JSON]], Awaitable[JSON]]
"""Takes the messages so far, in OpenAI's form, and returns the model's next one."""
CallChild = Callable[[str, JSON], Awaitable[str]]
"""Takes the name and the arguments of a call, and returns the child's answer."""


async def gather_loop(
    messages: list[JSON], call_model: CallModel, call_child: CallChild, *, best: bool
) -> str:
    """Returns the first text of the model without calls.

    `best`: exceptions of children are handed to the model as results (`return_exceptions`). Without it
    the first one is raised here, and what the others answered is lost.
    """

    async def run(call: JSON) -> str:
        arguments = json.loads(call["function"]["arguments"])
        return await call_child(call["function"]["name"], arguments)

    while True:
        message = await call_model(messages)
        calls = message.get("tool_calls") or ()
        if not calls:
            return message.get("content") or ""
        messages.append(message)
        results = await asyncio.gather(*map(run, calls), return_exceptions=best)
        for call, result in zip(calls, results, strict=True):
            content = result if isinstance(result, str) else f"Error: {result!r}"
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
