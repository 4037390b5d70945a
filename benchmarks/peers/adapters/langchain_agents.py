"""LangChain: a create_agent graph each, the sub-agents as async tools of the orchestrator."""

from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool

from adapters._lc_stub import OrchModel, SubModel, messages_of
from workload import DESC, LOOKUP_DESC, ORCH_PROMPT, SUB_PROMPT, History, Spec, lookup

NAME = "LangChain create_agent"
PACKAGES = ["langchain", "langgraph", "langchain-core"]


class Adapter:
    def __init__(self, spec: Spec):
        self._streams = spec.chunks > 0
        tools = (
            [StructuredTool.from_function(coroutine=lookup, name="lookup", description=LOOKUP_DESC)]
            if spec.sub_tool
            else []
        )
        self._agent = create_agent(
            OrchModel(spec),
            tools=[
                _as_tool(
                    i,
                    create_agent(
                        SubModel(spec, i), tools=tools, system_prompt=SUB_PROMPT.format(id=i)
                    ),
                )
                for i in spec.ids
            ],
            system_prompt=ORCH_PROMPT,
        )

    async def turn(self, text: str, history: History = ()) -> str:
        state = {"messages": [*messages_of(history), HumanMessage(text)]}
        if not self._streams:
            return (await self._agent.ainvoke(state))["messages"][-1].content
        last: dict[str, Any] = {}
        async for mode, part in self._agent.astream(state, stream_mode=["messages", "values"]):
            last = part if mode == "values" else last
        return last["messages"][-1].content


def _as_tool(sid: str, agent: Any) -> StructuredTool:
    async def ask(request: str) -> str:
        return (await agent.ainvoke({"messages": [HumanMessage(request)]}))["messages"][-1].content

    return StructuredTool.from_function(
        coroutine=ask, name=f"ask_{sid}", description=DESC.format(id=sid)
    )
