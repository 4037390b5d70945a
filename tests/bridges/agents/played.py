"""The three agents as systems of `kit conform`: with the model and the children of a play for their own model and tools."""

from agents import OpenAIChatCompletionsModel, Runner, function_tool
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI
from pydantic import SecretStr
from pydantic_ai import Tool
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from kit.conformance.task import Task
from kit.core.context import Principal
from tests.bridges.agents.flights import make_graph
from tests.bridges.agents.hotels import hotel_agent
from tests.bridges.agents.weather import weather_agent

KEY = SecretStr("none")
ALICE = Principal(tenant_id="acme", user_id="alice")


async def flights(task: Task) -> str:
    model = ChatOpenAI(model=task.model.name, base_url=task.model.base_url, api_key=KEY)
    tools = [
        StructuredTool.from_function(coroutine=child.ask, name=child.name)
        for child in task.children
    ]
    graph = make_graph(model, tools, task.prompt)
    state = await graph.ainvoke(
        {"messages": [("user", task.message)]}, {"configurable": {"user_id": "alice"}}
    )
    return state["messages"][-1].content


async def hotels(task: Task) -> str:
    provider = OpenAIProvider(base_url=task.model.base_url, api_key="none")
    model = OpenAIChatModel(task.model.name, provider=provider)
    tools = [Tool(child.ask) for child in task.children]
    with hotel_agent.override(model=model, tools=tools, instructions=task.prompt):
        return (await hotel_agent.run(task.message, deps=ALICE)).output


async def weather(task: Task) -> str:
    client = AsyncOpenAI(base_url=task.model.base_url, api_key="none")
    model = OpenAIChatCompletionsModel(task.model.name, client)
    tools = [function_tool(child.ask) for child in task.children]
    agent = weather_agent.clone(model=model, tools=tools, instructions=task.prompt)
    return (await Runner.run(agent, task.message, context=ALICE)).final_output
