"""Google ADK: the children as function tools, an agent with tools as an AgentTool, models by LiteLLM."""

import logging
import warnings
from typing import Any

warnings.filterwarnings("ignore")  # ADK announces its experimental parts on import

import litellm
from google.adk.agents import LlmAgent, RunConfig
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from kit.conformance.task import Child, Task

NAME = "Google ADK"
PACKAGES = ["google-adk", "litellm"]
DEFAULTS_SOURCE = "https://google.github.io/adk-docs/tools/performance"
BEST_SOURCE = "https://google.github.io/adk-docs/callbacks/types-of-callbacks"
CONFIGURATION = (
    "`on_tool_error_callback` with words of its own, `before_tool_callback` that counts calls, "
    "`max_llm_calls`, retries of LiteLLM"
)
NOT_OFFERED = {
    "foreign_data": "tools have no principal that they are held to",
    "hangs": "a tool has no time limit",
    "spend_cap": "`max_llm_calls` counts one run, and an AgentTool begins another",
    "killed": "a resumed run calls tools again; its documentation asks for idempotent ones",
    "skips_one": "nobody looks which parts of the message got a call",
}
litellm.telemetry = False
logging.disable(logging.CRITICAL)


def _words(tool: Any, args: Any, tool_context: Any, error: Exception) -> dict[str, str]:
    return {"error": f"The tool {tool.name} is not available. Say that it failed."}


def _cap(limit: int) -> Any:
    """A callback that lets so many calls through."""
    calls: list[str] = []

    def before(tool: Any, args: Any, tool_context: Any) -> dict[str, str] | None:
        calls.append(tool.name)
        if len(calls) > limit:
            return {"error": f"The tool {tool.name} was not called: over the limit. Say so."}
        return None

    return before


def _agent(name: str, prompt: str, model: str, children: tuple[Child, ...], task: Task) -> LlmAgent:
    options: dict[str, Any] = {}
    retries: dict[str, Any] = {}
    if task.best:
        options["on_tool_error_callback"] = _words
        retries["num_retries"] = 3
        if task.cap is not None and name == "lead":
            options["before_tool_callback"] = _cap(task.cap)
    llm = LiteLlm(model=f"openai/{model}", api_base=task.model.base_url, api_key="none", **retries)
    return LlmAgent(
        name=name,
        description=f"Knows the user's {name} reference.",
        instruction=prompt,
        model=llm,
        tools=[_tool(child, task) for child in children],
        **options,
    )


def _tool(child: Child, task: Task) -> Any:
    if child.model is None:
        return FunctionTool(child.ask)
    agent = _agent(child.name, task.child_prompt, child.model.name, child.tools, task)
    return AgentTool(agent)


async def system(task: Task) -> str:
    agent = _agent("lead", task.prompt, task.model.name, task.children, task)
    runner = InMemoryRunner(agent=agent, app_name="conformance")
    session = await runner.session_service.create_session(
        app_name="conformance", user_id=task.principal
    )
    config = RunConfig()
    if task.best and task.model_calls is not None:
        config = RunConfig(max_llm_calls=task.model_calls)
    text = ""
    async for event in runner.run_async(
        user_id=task.principal,
        session_id=session.id,
        new_message=types.Content(role="user", parts=[types.Part(text=task.message)]),
        run_config=config,
    ):
        if event.is_final_response() and event.content and event.content.parts:
            text = event.content.parts[0].text or text
    return text
