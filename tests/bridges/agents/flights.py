"""A flight desk in LangGraph, built as its quickstart builds an agent: a model node, a tool node, and an edge between."""

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import SystemMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langgraph.graph import END, START, MessagesState, StateGraph

from kit.models.scripted import Line, ScriptedModel

FARES = {"Leeds": 120, "Porto": 310}
BROKEN = "Atlantis"


@tool
def find_flight(city: str) -> str:
    """Find the next flight to a city, with its fare."""
    if city == BROKEN:
        raise ValueError("zx-no such airport")
    return f"A flight to {city} leaves at noon, {FARES[city]} euros."


def _speak(messages: list[Any]) -> Line:
    """What a model would say: it looks once, then answers with what it found."""
    if messages[-1].type == "tool":
        text = str(messages[-1].content)
        return Line(text, pieces=(text[:9], text[9:]))
    city = BROKEN if BROKEN in str(messages[-1].content) else "Leeds"
    return Line("Let me look.", calls=[("find_flight", {"city": city})])


def make_graph(model: BaseChatModel, tools: Sequence[BaseTool], prompt: str) -> Any:
    """The agent over a model and its tools."""
    tools_by_name = {tool.name: tool for tool in tools}
    model_with_tools = model.bind_tools(tools)

    async def llm_call(state: MessagesState) -> dict[str, Any]:
        """The model decides whether to call a tool."""
        messages = [SystemMessage(prompt), *state["messages"]]
        return {"messages": [await model_with_tools.ainvoke(messages)]}

    async def tool_node(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        """Performs the tool calls."""
        traveller = config.get("configurable", {})["user_id"]
        results: list[ToolMessage] = []
        for call in getattr(state["messages"][-1], "tool_calls", []):
            observation = await tools_by_name[call["name"]].ainvoke(call["args"])
            text = f"{observation} For {traveller}."
            results.append(ToolMessage(content=text, tool_call_id=call["id"], name=call["name"]))
        return {"messages": results}

    builder = StateGraph(MessagesState)
    builder.add_node("llm_call", llm_call)
    builder.add_node("tool_node", tool_node)
    builder.add_edge(START, "llm_call")
    builder.add_conditional_edges("llm_call", should_continue, ["tool_node", END])
    builder.add_edge("tool_node", "llm_call")
    return builder.compile()


def should_continue(state: MessagesState) -> str:
    """Goes to the tools if the model called one, else ends."""
    if getattr(state["messages"][-1], "tool_calls", []):
        return "tool_node"
    return END


graph = make_graph(ScriptedModel(_speak), [find_flight], "You book flights for your traveller.")
