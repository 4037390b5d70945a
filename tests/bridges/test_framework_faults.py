"""How agents of other frameworks misbehave as sub-agents, and what becomes of that.

Pydantic AI and the Agents SDK are imported where they are used: every process of the tests reads every file, and most
play none of these.
"""

import asyncio
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel

from kit.bridges.part import BridgeFault, Called, Question, Reported, Spent
from kit.bridges.recognise import bridge_of
from kit.core.bodies.call import ToolEnded, ToolStarted
from kit.core.errors import CodeError
from kit.core.outcome import Usage, total
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.turn import run_turn
from tests.kits import ALICE, SmallKit, asks, bodies, leading, nothing_runs, small_kit

pytestmark = pytest.mark.realtime


class Hangs:
    """A tool that hangs, and knows whether it was stopped."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.was_stopped = False

    async def work(self) -> str:
        self.begun.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            self.was_stopped = True
            raise
        return "never"


def hanging_graph(hangs: Hangs) -> Any:
    async def node(state: MessagesState) -> dict[str, Any]:
        await hangs.work()
        return {}

    model = ScriptedModel(Line("Let me look.", calls=[("search", {})]))

    async def call(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("call", call)
    builder.add_node("tools", node)
    builder.add_edge(START, "call")
    builder.add_edge("call", "tools")
    builder.add_edge("tools", END)
    return builder.compile()


def hanging_pydantic_agent(hangs: Hangs) -> Any:
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    return Agent(TestModel(), tools=[hangs.work])


def hanging_openai_agent(hangs: Hangs) -> Any:
    import agents as openai_agents

    from tests.bridges.agents.weather import ScriptedResponses

    @openai_agents.function_tool
    async def get_weather(city: str) -> str:
        """Hangs."""
        return await hangs.work()

    return openai_agents.Agent(name="a", model=ScriptedResponses(), tools=[get_weather])


HANGING = [hanging_graph, hanging_pydantic_agent, hanging_openai_agent]


def kit_with(system: Any, **settings: Any) -> SmallKit:
    """A kit whose lead asks one sub-agent, which is this system."""
    kit = small_kit(leading(asks("desk")), {"desk": ScriptedModel()}, **settings)
    kit.team = kit.team.with_services({"desk": system})
    return kit


@pytest.mark.parametrize("make", HANGING)
async def test_stop_ends_the_work_inside_the_framework_and_closes_its_call(make: Any):
    hangs = Hangs()
    turn = run_turn("about desk", ALICE, kit_with(make(hangs)))
    await asyncio.wait_for(hangs.begun.wait(), 60)
    turn.cancel()
    reply = await turn
    assert reply.status == "cancelled" and hangs.was_stopped
    assert len(bodies(reply, ToolStarted)) == len(bodies(reply, ToolEnded)) == 1
    assert reply.usage.untold_tokens == 1, "what it had under way it does not say any more"
    assert nothing_runs()


# What each framework has of its own


async def ask(system: object) -> list[Any]:
    bridge = bridge_of(system, "mine.py:agent")
    return [part async for part in bridge.ask(Question("To Leeds?", ALICE.principal))]


def graph_of(node: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile()


async def test_a_graph_that_waits_for_a_person_is_a_failure_that_says_so():
    async def node(state: MessagesState) -> dict[str, Any]:
        interrupt("sure?")
        return {}

    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    with pytest.raises(BridgeFault, match="waits for a person") as error:
        await ask(builder.compile(checkpointer=InMemorySaver()))
    assert error.value.reason == "insufficient"


async def test_an_inner_graph_is_told_once_and_streams_nothing():
    inner = graph_of(lambda state: {"messages": [AIMessage("inner", usage_metadata=COUNTED)]})
    parts = await ask(graph_of(inner))
    assert parts[-1] == Reported("inner")
    assert total([part.usage for part in parts if isinstance(part, Spent)]) == Usage(
        input_tokens=3, output_tokens=2, model_calls=1
    )


COUNTED: Any = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}


async def test_a_graph_whose_steps_run_out_is_over_its_budget():
    builder = StateGraph(MessagesState)
    builder.add_node("node", lambda state: {"messages": []})
    builder.add_edge(START, "node")
    builder.add_edge("node", "node")
    with pytest.raises(BridgeFault) as error:
        await ask(builder.compile().with_config(recursion_limit=5))
    assert error.value.reason == "budget"


async def test_a_model_that_does_not_count_leaves_tokens_unknown():
    silent = AIMessage("Yes.", response_metadata={"model_name": "m"})
    parts = await ask(graph_of(lambda state: {"messages": [silent]}))
    assert parts == [Spent(Usage(model_calls=1, untold_tokens=1)), Reported("Yes.")]


def test_a_graph_that_cannot_be_asked_says_what_to_do():
    builder = StateGraph(MessagesState)
    builder.add_node("node", lambda state: {})
    builder.add_edge(START, "node")
    with pytest.raises(CodeError, match=r"not compiled; name `graph\.compile\(\)`"):
        bridge_of(builder, "mine.py:graph")

    class Other(TypedDict):
        question: str

    other = StateGraph(Other)
    other.add_node("node", lambda state: {})
    other.add_edge(START, "node")
    with pytest.raises(CodeError, match="no `messages`; wrap it"):
        bridge_of(other.compile(), "mine.py:graph")


class Fare(BaseModel):
    city: str
    euros: int


async def test_a_structured_output_is_json():
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    agent = Agent(TestModel(custom_output_args={"city": "Leeds", "euros": 120}), output_type=Fare)
    assert (await ask(agent))[-1] == Reported('{"city":"Leeds","euros":120}')


async def test_a_run_that_waits_for_an_approval_is_a_failure_that_says_so():
    import agents as openai_agents
    from pydantic_ai import Agent, DeferredToolRequests
    from pydantic_ai.exceptions import ApprovalRequired
    from pydantic_ai.models.test import TestModel

    from tests.bridges.agents.weather import ScriptedResponses

    def pay() -> str:
        raise ApprovalRequired

    agent = Agent(TestModel(), tools=[pay], output_type=[str, DeferredToolRequests])
    with pytest.raises(BridgeFault, match="waits for a person"):
        await ask(agent)

    @openai_agents.function_tool(needs_approval=True)
    async def get_weather(city: str) -> str:
        """Asks first."""
        return "sunny"

    asking = openai_agents.Agent(name="a", model=ScriptedResponses(), tools=[get_weather])
    with pytest.raises(BridgeFault, match="waits for a person"):
        await ask(asking)


async def test_a_tool_that_failed_inside_an_agent_is_told_as_failed():
    from pydantic_ai import Agent
    from pydantic_ai.exceptions import ToolFailed
    from pydantic_ai.models.test import TestModel

    def look_up() -> str:
        raise ToolFailed("zx-down")

    parts = await ask(Agent(TestModel(), tools=[look_up]))
    [called] = [part for part in parts if isinstance(part, Called)]
    assert called.fault is not None and "zx-down" in called.fault


async def test_a_run_over_the_frameworks_own_limits_is_over_its_budget():
    import agents as openai_agents

    from tests.bridges.agents.weather import ScriptedResponses

    @openai_agents.function_tool
    async def get_weather(city: str) -> str:
        """Says nothing, so that it is asked again."""
        return ""

    endless = openai_agents.Agent(name="a", model=ScriptedResponses(), tools=[get_weather])
    with pytest.raises(BridgeFault) as error:
        await ask(endless)
    assert error.value.reason == "budget"


async def test_a_guardrail_that_trips_is_a_refusal():
    import agents as openai_agents

    from tests.bridges.agents import weather

    async def trips(*_: Any) -> Any:
        return openai_agents.GuardrailFunctionOutput(output_info="no", tripwire_triggered=True)

    guarded = weather.weather_agent.clone(
        input_guardrails=[openai_agents.InputGuardrail(guardrail_function=trips)]
    )
    with pytest.raises(BridgeFault) as error:
        await ask(guarded)
    assert error.value.reason == "refusal"


async def test_a_handoff_is_a_call_of_an_agent():
    import agents as openai_agents

    from tests.bridges.agents import weather
    from tests.bridges.agents.weather import ScriptedResponses

    desk = openai_agents.Agent(
        name="Desk",
        model=ScriptedResponses("transfer_to_weather_desk"),
        handoffs=[weather.weather_agent],
    )
    parts = await ask(desk)
    [called] = [part for part in parts if isinstance(part, Called)]
    assert (called.name, called.kind) == ("Weather desk", "agent")
    assert isinstance(parts[-1], Reported) and parts[-1].text.startswith("For tomorrow: ")


async def test_nothing_of_a_run_is_traced_elsewhere():
    import agents as openai_agents

    from tests.bridges.agents import weather

    heard: list[Any] = []

    class Listener(openai_agents.tracing.TracingProcessor):
        def on_trace_start(self, trace: Any) -> None:
            heard.append(trace)

        def on_trace_end(self, trace: Any) -> None: ...

        def on_span_start(self, span: Any) -> None:
            heard.append(span)

        def on_span_end(self, span: Any) -> None: ...

        def shutdown(self) -> None: ...

        def force_flush(self) -> None: ...

    openai_agents.set_trace_processors([Listener()])
    await ask(weather.weather_agent)
    assert heard == []
    await (
        openai_agents.Runner.run_streamed(
            weather.weather_agent, "To Leeds?", context=ALICE.principal
        )
        .stream_events()
        .__anext__()
    )
    assert heard, "left alone, it traces"
