"""Microsoft Agent Framework: the children as function tools, an agent with tools by `Agent.as_tool`."""

from collections.abc import Awaitable, Callable
from typing import Any

from agent_framework import Agent, FunctionInvocationContext, function_middleware, tool
from agent_framework.openai import OpenAIChatCompletionClient

from kit.conformance.task import Child, Task

NAME = "MS Agent Framework"
PACKAGES = ["agent-framework-core", "agent-framework-openai"]
DEFAULTS_SOURCE = "https://learn.microsoft.com/en-us/agent-framework/agents/middleware"
BEST_SOURCE = (
    "https://learn.microsoft.com/en-us/agent-framework/agents/middleware/exception-handling"
)
CONFIGURATION = (
    "function middleware that words errors, `max_function_calls`, `max_iterations`, "
    "`max_duration_seconds`"
)
NOT_OFFERED = {
    "foreign_data": "tools have no principal that they are held to",
    "hangs": "its limits of time are looked at between rounds of calls, not during one",
    "over_cap": "`max_function_calls` is looked at after a round of calls, not before",
    "spend_cap": "its limits count one agent, not the tree",
    "killed": "checkpoints are those of workflows, not of an agent's tool calls",
    "skips_one": "nobody looks which parts of the message got a call",
}


@function_middleware
async def _words(
    context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]
) -> None:
    try:
        await call_next()
    # As its documentation words the errors of tools: a tool may raise anything.
    except Exception:
        context.result = f"The tool {context.function.name} is not available. Say that it failed."


def _agent(name: str, prompt: str, model: str, children: tuple[Child, ...], task: Task) -> Agent:
    client = OpenAIChatCompletionClient(model=model, base_url=task.model.base_url, api_key="none")
    options: dict[str, Any] = {}
    if task.best:
        options["middleware"] = [_words]
        limits = client.function_invocation_configuration
        limits["max_function_calls"] = task.cap
        limits["max_duration_seconds"] = task.seconds
        if task.model_calls is not None:
            limits["max_iterations"] = task.model_calls
    return Agent(
        client=client,
        name=name,
        description=f"Knows the user's {name} reference.",
        instructions=prompt,
        tools=[_tool(child, task) for child in children],
        **options,
    )


def _tool(child: Child, task: Task) -> Any:
    if child.model is None:
        return tool(
            child.ask,
            name=child.name,
            description=child.description,
            approval_mode="never_require",
        )
    agent = _agent(child.name, task.child_prompt, child.model.name, child.tools, task)
    return agent.as_tool(name=child.name, description=child.description, arg_name="request")


async def system(task: Task) -> str:
    agent = _agent("lead", task.prompt, task.model.name, task.children, task)
    return (await agent.run(task.message)).text
