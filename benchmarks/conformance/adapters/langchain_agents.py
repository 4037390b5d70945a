"""LangChain's create_agent over LangGraph: the children as tools, an agent with tools as a tool that runs its graph."""

from contextlib import AsyncExitStack
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import (
    ModelCallLimitMiddleware,
    ModelRetryMiddleware,
    ToolCallLimitMiddleware,
    ToolErrorMiddleware,
)
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from kit.conformance.task import Child, Task

NAME = "LangGraph create_agent"
PACKAGES = ["langchain", "langgraph", "langchain-openai", "langgraph-checkpoint-sqlite"]
DEFAULTS_SOURCE = "https://docs.langchain.com/oss/python/langchain/multi-agent/subagents"
BEST_SOURCE = "https://docs.langchain.com/oss/langchain/middleware/built-in"
CONFIGURATION = (
    "ToolErrorMiddleware with words of its own, ModelRetryMiddleware, ToolCallLimitMiddleware, "
    'ModelCallLimitMiddleware, `step_timeout`, an SQLite checkpointer with `durability="sync"`'
)
NOT_OFFERED = {
    "foreign_data": "tools have no principal",
    "spend_cap": "its limits of model calls count one agent, not the tree",
    "skips_one": "nobody looks which parts of the message got a call",
}


def words_for_error(error: Exception, request: Any) -> str:
    """What the model reads of a tool that raised."""
    return f"The tool {request.tool_call['name']} is not available. Say that it failed."


def model_of(task: Task, name: str) -> ChatOpenAI:
    return ChatOpenAI(model=name, base_url=task.model.base_url, api_key="none")


def middleware_of(task: Task, cap: int | None) -> list[Any]:
    """The middleware of one agent."""
    if not task.best:
        return []
    middleware: list[Any] = [ToolErrorMiddleware(words_for_error), ModelRetryMiddleware()]
    if cap is not None:
        middleware.append(ToolCallLimitMiddleware(run_limit=cap))
    if task.model_calls is not None:
        middleware.append(ModelCallLimitMiddleware(run_limit=task.model_calls))
    return middleware


def tool_of(child: Child, task: Task) -> StructuredTool:
    ask = child.ask
    if child.model is not None:
        agent = create_agent(
            model_of(task, child.model.name),
            [tool_of(lookup, task) for lookup in child.tools],
            system_prompt=task.child_prompt,
            middleware=middleware_of(task, None),
        )

        async def ask(request: str) -> str:
            state = await agent.ainvoke({"messages": [("user", request)]})
            return state["messages"][-1].text

    return StructuredTool.from_function(
        coroutine=ask, name=child.name, description=child.description
    )


async def run(agent: Any, task: Task) -> str:
    """Asks a graph, or lets its thread go on where the process died."""
    if task.seconds is not None and task.best:
        agent.step_timeout = task.seconds
    config = {"configurable": {"thread_id": task.session}}
    question: Any = {"messages": [("user", task.message)]}
    options = {}
    if agent.checkpointer:
        options = {"durability": "sync"}
        if (await agent.aget_state(config)).next:
            question = None
    state = await agent.ainvoke(question, config, **options)
    return state["messages"][-1].text


async def checkpointer_of(task: Task, stack: AsyncExitStack) -> Any:
    if not task.best:
        return None
    saver = AsyncSqliteSaver.from_conn_string(str(task.folder / "checkpoints.db"))
    return await stack.enter_async_context(saver)


async def system(task: Task) -> str:
    async with AsyncExitStack() as stack:
        agent = create_agent(
            model_of(task, task.model.name),
            [tool_of(child, task) for child in task.children],
            system_prompt=task.prompt,
            middleware=middleware_of(task, task.cap),
            checkpointer=await checkpointer_of(task, stack),
        )
        return await run(agent, task)
