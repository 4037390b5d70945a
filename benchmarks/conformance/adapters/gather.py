"""A plain loop over the endpoint, as one writes it by hand: all calls of a reply in one `asyncio.gather`."""

import asyncio
import json
from typing import Any

from openai import AsyncOpenAI

from kit.conformance.task import Child, Task

NAME = "gather loop"
PACKAGES = ["openai"]
DEFAULTS_SOURCE = "https://docs.python.org/3/library/asyncio-task.html#running-tasks-concurrently"
BEST_SOURCE = DEFAULTS_SOURCE
CONFIGURATION = "`return_exceptions=True`, and `asyncio.timeout` around each child"
NOT_OFFERED: dict[str, str] = {}


def _tool(child: Child) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {"request": {"type": "string"}},
        "required": ["request"],
    }
    function = {"name": child.name, "description": child.description, "parameters": parameters}
    return {"type": "function", "function": function}


async def _ask(child: Child, request: str, task: Task) -> str:
    if child.model is not None:
        return await _loop(child.model, child.tools, task.child_prompt, request, task)
    if not task.best:
        return await child.ask(request)
    async with asyncio.timeout(task.seconds):
        return await child.ask(request)


async def _call(children: dict[str, Child], call: Any, task: Task) -> str:
    request = json.loads(call.function.arguments)["request"]
    return await _ask(children[call.function.name], request, task)


async def _loop(model: Any, children: tuple[Child, ...], prompt: str, text: str, task: Task) -> str:
    client = AsyncOpenAI(base_url=model.base_url, api_key=model.api_key)
    tools: Any = [_tool(child) for child in children]
    names = {child.name: child for child in children}
    messages: list[Any] = [
        {"role": "system", "content": prompt},
        {"role": "user", "content": text},
    ]
    while True:
        reply = await client.chat.completions.create(
            model=model.name, messages=messages, tools=tools
        )
        message = reply.choices[0].message
        if not message.tool_calls:
            return message.content or ""
        messages.append(message)
        results = await asyncio.gather(
            *[_call(names, call, task) for call in message.tool_calls],
            return_exceptions=task.best,
        )
        for call, result in zip(message.tool_calls, results, strict=True):
            content = result if isinstance(result, str) else f"Error: {result!r}"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


async def system(task: Task) -> str:
    return await _loop(task.model, task.children, task.prompt, task.message, task)
