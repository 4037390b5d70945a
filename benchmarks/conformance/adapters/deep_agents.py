"""deepagents: the children as sub-agents of its `task` tool, functions as compiled graphs of one node."""

from contextlib import AsyncExitStack
from typing import Any

from deepagents import create_deep_agent
from langchain_agents import checkpointer_of, middleware_of, model_of, run, tool_of
from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from kit.conformance.task import Child, Task

NAME = "deepagents"
PACKAGES = ["deepagents", "langgraph", "langchain-openai", "langgraph-checkpoint-sqlite"]
DEFAULTS_SOURCE = "https://docs.langchain.com/oss/python/deepagents/subagents"
BEST_SOURCE = "https://docs.langchain.com/oss/langchain/middleware/built-in"
CONFIGURATION = (
    "the middleware of LangChain (ToolErrorMiddleware with words of its own, ModelRetryMiddleware, "
    'limits of tool and model calls), `step_timeout`, an SQLite checkpointer with `durability="sync"`'
)
NOT_OFFERED = {
    "foreign_data": "sub-agents have no principal",
    "spend_cap": "its limits of model calls count one agent, not the tree",
    "skips_one": "nobody looks which parts of the message got a call",
}


def _graph(child: Child) -> Any:
    """A child without a model as a graph, which is what a compiled sub-agent has to be."""

    async def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(await child.ask(state["messages"][-1].text))]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder.compile()


def _subagent(child: Child, task: Task) -> Any:
    if child.model is None:
        return {
            "name": child.name,
            "description": child.description,
            "runnable": _graph(child),
        }
    return {
        "name": child.name,
        "description": child.description,
        "system_prompt": task.child_prompt,
        "model": model_of(task, child.model.name),
        "tools": [tool_of(lookup, task) for lookup in child.tools],
        "middleware": middleware_of(task, None),
    }


async def system(task: Task) -> str:
    async with AsyncExitStack() as stack:
        agent = create_deep_agent(
            model=model_of(task, task.model.name),
            system_prompt=task.prompt,
            subagents=[_subagent(child, task) for child in task.children],
            middleware=middleware_of(task, task.cap),
            checkpointer=await checkpointer_of(task, stack),
        )
        return await run(agent, task)
