"""OpenAI Agents SDK: the children as function tools, an agent with tools by `Agent.as_tool`."""

from typing import Any

from agents import (
    Agent,
    ModelRetrySettings,
    ModelSettings,
    OpenAIChatCompletionsModel,
    RunConfig,
    Runner,
    function_tool,
    retry_policies,
    set_tracing_disabled,
)
from agents.run_error_handlers import RunErrorHandlerResult
from openai import AsyncOpenAI

from kit.conformance.task import Child, Task

NAME = "OpenAI Agents"
PACKAGES = ["openai-agents", "openai"]
DEFAULTS_SOURCE = "https://openai.github.io/openai-agents-python/tools/"
BEST_SOURCE = "https://openai.github.io/openai-agents-python/running_agents/"
CONFIGURATION = (
    "`failure_error_function` with words of its own, `timeout` of a function tool, `max_turns` with "
    "an error handler, `tool_not_found_behavior`, runner-managed retries"
)
NOT_OFFERED = {
    "foreign_data": "tools have no principal",
    "over_cap": "it bounds how many tools run at once, not how many are called",
    "spend_cap": "`max_turns` counts one agent, not the tree",
    "killed": "a run's state is kept where it is interrupted on purpose, not where its process dies",
    "skips_one": "nobody looks which parts of the message got a call",
}


def _words(context: Any, error: Exception) -> str:
    """What the model reads of a tool that raised."""
    return f"The tool {context.tool_name} is not available. Say that it failed."


def _tool(child: Child, task: Task, client: AsyncOpenAI) -> Any:
    if child.model is not None:
        agent = _agent(child.name, task.child_prompt, child.model.name, child.tools, task, client)
        options: dict[str, Any] = {}
        if task.best:
            options = {"failure_error_function": _words, "max_turns": task.model_calls}
        return agent.as_tool(child.name, child.description, **options)
    options = {}
    if task.best:
        options = {"failure_error_function": _words, "timeout": task.seconds}
    return function_tool(child.ask, **options)


def _agent(
    name: str,
    prompt: str,
    model: str,
    children: tuple[Child, ...],
    task: Task,
    client: AsyncOpenAI,
) -> Agent[Any]:
    settings = ModelSettings()
    if task.best:
        policy = retry_policies.any(
            retry_policies.retry_after(), retry_policies.http_status([429, 500, 503])
        )
        settings = ModelSettings(retry=ModelRetrySettings(max_retries=3, policy=policy))
    return Agent(
        name=name,
        instructions=prompt,
        model=OpenAIChatCompletionsModel(model, client),
        model_settings=settings,
        tools=[_tool(child, task, client) for child in children],
    )


def _too_many_turns(data: Any) -> RunErrorHandlerResult:
    return RunErrorHandlerResult(final_output="I could not finish within the limit of turns.")


async def system(task: Task) -> str:
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=task.model.base_url, api_key="none")
    agent = _agent("lead", task.prompt, task.model.name, task.children, task, client)
    if not task.best:
        return (await Runner.run(agent, task.message)).final_output
    config = RunConfig(tracing_disabled=True, tool_not_found_behavior="return_error_to_model")
    result = await Runner.run(
        agent,
        task.message,
        run_config=config,
        max_turns=task.model_calls or 10,
        error_handlers={"max_turns": _too_many_turns},
    )
    return result.final_output
