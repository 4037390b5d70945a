"""A plain loop over the endpoint, as one writes it by hand: `kit/conformance/gather.py` with OpenAI's client."""

import asyncio
from typing import Any

from openai import AsyncOpenAI

from kit.conformance.gather import JSON, gather_loop
from kit.conformance.task import Child, Model, Task

NAME = "gather loop"
PACKAGES = ["openai"]
DEFAULTS_SOURCE = "https://docs.python.org/3/library/asyncio-task.html#running-tasks-concurrently"
BEST_SOURCE = DEFAULTS_SOURCE
CONFIGURATION = "`return_exceptions=True`, and `asyncio.timeout` around each child"
NOT_OFFERED: dict[str, str] = {}


def _tool(child: Child) -> JSON:
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


async def _loop(
    model: Model, children: tuple[Child, ...], prompt: str, text: str, task: Task
) -> str:
    client = AsyncOpenAI(base_url=model.base_url, api_key=model.api_key)
    tools: Any = [_tool(child) for child in children]
    names = {child.name: child for child in children}

    async def call_model(messages: Any) -> JSON:
        reply = await client.chat.completions.create(
            model=model.name, messages=messages, tools=tools
        )
        return reply.choices[0].message.model_dump(exclude_none=True)

    async def call_child(name: str, arguments: JSON) -> str:
        return await _ask(names[name], arguments["request"], task)

    messages = [{"role": "system", "content": prompt}, {"role": "user", "content": text}]
    return await gather_loop(messages, call_model, call_child, best=task.best)


async def system(task: Task) -> str:
    return await _loop(task.model, task.children, task.prompt, task.message, task)
