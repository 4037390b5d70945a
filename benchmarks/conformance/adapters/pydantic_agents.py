"""Pydantic AI: the children as tools; an agent with tools is run inside a tool, as its guide to delegation does."""

from typing import Any

from pydantic_ai import Agent, RunContext, ToolFailed, UsageLimits
from pydantic_ai.capabilities import Hooks
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from kit.conformance.task import Child, Task

NAME = "Pydantic AI"
PACKAGES = ["pydantic-ai-slim", "openai"]
DEFAULTS_SOURCE = "https://ai.pydantic.dev/multi-agent-applications/"
BEST_SOURCE = "https://ai.pydantic.dev/hooks/"
CONFIGURATION = (
    "a hook on tool errors that raises ToolFailed with words of its own, `tool_timeout`, "
    "`UsageLimits` shared with the agents below"
)
NOT_OFFERED = {
    "foreign_data": "tools have no principal",
    "killed": "needs a durable execution service beside it (Temporal, DBOS, Prefect)",
    "skips_one": "nobody looks which parts of the message got a call",
}


async def _words(ctx: Any, *, call: Any, tool_def: Any, args: Any, error: Exception) -> Any:
    raise ToolFailed(f"The tool {call.tool_name} is not available. Say that it failed.")


def _limits(task: Task) -> UsageLimits | None:
    if not task.best or (task.cap is None and task.model_calls is None):
        return None
    return UsageLimits(request_limit=task.model_calls, tool_calls_limit=task.cap)


def _agent(prompt: str, model: str, children: tuple[Child, ...], task: Task) -> Agent:
    provider = OpenAIProvider(base_url=task.model.base_url, api_key="none")
    options: dict[str, Any] = {}
    if task.best:
        options = {
            "tool_timeout": task.seconds,
            "capabilities": [Hooks(tool_execute_error=_words)],
        }
    agent = Agent(OpenAIChatModel(model, provider=provider), instructions=prompt, **options)
    for child in children:
        if child.model is None:
            agent.tool_plain(child.ask)
        else:
            agent.tool(_delegation(child, task), name=child.name, description=child.description)
    return agent


def _delegation(child: Child, task: Task) -> Any:
    assert child.model is not None
    agent = _agent(task.child_prompt, child.model.name, child.tools, task)

    async def ask(ctx: RunContext, request: str) -> str:
        result = await agent.run(request, usage=ctx.usage, usage_limits=_limits(task))
        return result.output

    return ask


async def system(task: Task) -> str:
    agent = _agent(task.prompt, task.model.name, task.children, task)
    return (await agent.run(task.message, usage_limits=_limits(task))).output
