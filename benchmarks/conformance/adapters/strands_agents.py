"""Strands: the children as tools, an agent with tools run inside one; models by LiteLLM."""

from typing import Any

import litellm
from strands import Agent, tool
from strands.hooks import AfterToolCallEvent, BeforeToolCallEvent, HookProvider, HookRegistry
from strands.models.litellm import LiteLLMModel

from kit.conformance.task import Child, Task

NAME = "Strands"
PACKAGES = ["strands-agents", "litellm"]
DEFAULTS_SOURCE = "https://strandsagents.com/docs/user-guide/concepts/tools/executors/"
BEST_SOURCE = "https://strandsagents.com/docs/api/python/strands.hooks.events/"
CONFIGURATION = (
    "hooks: errors of tools in words of its own, calls over the limit cancelled; `limits` of turns"
)
NOT_OFFERED = {
    "foreign_data": "tools have no principal that they are held to",
    "hangs": "a tool has no time limit",
    "spend_cap": "`limits` count one agent, not the tree",
    "killed": "a session manager keeps messages, and calls without a result are made again",
    "skips_one": "nobody looks which parts of the message got a call",
}
litellm.telemetry = False


class _Hooks(HookProvider):
    def __init__(self, cap: int | None):
        self._cap = cap
        self._calls = 0

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        registry.add_callback(BeforeToolCallEvent, self._count)
        registry.add_callback(AfterToolCallEvent, self._word)

    def _count(self, event: BeforeToolCallEvent) -> None:
        self._calls += 1
        if self._cap is not None and self._calls > self._cap:
            event.cancel_tool = "This was not called: over the limit. Say so."

    def _word(self, event: AfterToolCallEvent) -> None:
        if event.exception is not None:
            name = event.tool_use["name"]
            text = f"The tool {name} is not available. Say that it failed."
            event.result = {**event.result, "content": [{"text": text}]}


def _agent(
    prompt: str, model: str, children: tuple[Child, ...], task: Task, cap: int | None
) -> Agent:
    llm = LiteLLMModel(
        client_args={"api_base": task.model.base_url, "api_key": "none"},
        model_id=f"openai/{model}",
    )
    options: dict[str, Any] = {}
    if task.best:
        options["hooks"] = [_Hooks(cap)]
    return Agent(
        model=llm,
        system_prompt=prompt,
        tools=[_tool(child, task) for child in children],
        callback_handler=None,
        **options,
    )


def _limits(task: Task) -> dict[str, Any]:
    if task.best and task.model_calls is not None:
        return {"limits": {"turns": task.model_calls}}
    return {}


def _tool(child: Child, task: Task) -> Any:
    ask = child.ask
    if child.model is not None:
        model = child.model.name

        async def ask(request: str) -> str:
            agent = _agent(task.child_prompt, model, child.tools, task, None)
            return str(await agent.invoke_async(request, **_limits(task)))

    return tool(ask, name=child.name, description=child.description)


async def system(task: Task) -> str:
    agent = _agent(task.prompt, task.model.name, task.children, task, task.cap)
    return str(await agent.invoke_async(task.message, **_limits(task))).rstrip("\n")
