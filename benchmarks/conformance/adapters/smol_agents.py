"""smolagents: a ToolCallingAgent with the children as tools, an agent with tools as a managed agent. It is
synchronous, so a tool runs its child on a loop of its own, in the thread that smolagents gives it."""

import asyncio
from typing import Any

from smolagents import LogLevel, OpenAIModel, Tool, ToolCallingAgent

from kit.conformance.task import Child, Task

NAME = "smolagents"
PACKAGES = ["smolagents", "openai"]
DEFAULTS_SOURCE = "https://huggingface.co/docs/smolagents/reference/agents"
BEST_SOURCE = "https://huggingface.co/docs/smolagents/reference/agents"
CONFIGURATION = "`max_steps` and `max_tool_threads`"
NOT_OFFERED = {
    "foreign_data": "tools have no principal",
    "hangs": "a tool has no time limit, and its thread cannot be stopped",
    "over_cap": "it bounds how many tools run at once, not how many are called",
    "spend_cap": "`max_steps` counts one agent, not the tree",
    "killed": "a run's memory is not stored while it runs",
    "stopped": "an interrupt is looked at between steps, and threads cannot be stopped",
    "skips_one": "nobody looks which parts of the message got a call",
}


class _ChildTool(Tool):
    inputs = {"request": {"type": "string", "description": "What is asked."}}
    output_type = "string"
    skip_forward_signature_validation = True

    def __init__(self, child: Child):
        self.name = child.name
        self.description = child.description
        self._ask = child.ask
        super().__init__()

    def forward(self, request: str) -> str:
        return asyncio.run(self._ask(request))


def _agent(
    name: str | None, prompt: str, model: str, children: tuple[Child, ...], task: Task
) -> ToolCallingAgent:
    options: dict[str, Any] = {}
    if task.best:
        options["max_steps"] = task.model_calls or 6
        options["max_tool_threads"] = max(4, len(children))
    managed = [child for child in children if child.model is not None]
    return ToolCallingAgent(
        tools=[_ChildTool(child) for child in children if child.model is None],
        managed_agents=[
            _agent(child.name, task.child_prompt, child.model.name, child.tools, task)
            for child in managed
            if child.model is not None
        ],
        model=OpenAIModel(model_id=model, api_base=task.model.base_url, api_key="none"),
        instructions=prompt,
        name=name,
        description=f"Knows the user's {name} reference.",
        verbosity_level=LogLevel.OFF,
        **options,
    )


def system(task: Task) -> str:
    agent = _agent(None, task.prompt, task.model.name, task.children, task)
    return str(agent.run(task.message))
