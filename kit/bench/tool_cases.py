"""Plays a card's cases for failing tools: what does the agent say when a tool returns nothing, or raises?"""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from kit.bench.routing import BENCH_USER, RoutingKit
from kit.core.bodies.call import ToolStarted
from kit.core.card import ToolCase, ToolMode
from kit.core.context import Session
from kit.core.errors import BindError
from kit.core.outcome import AgentCall, Outcome, Reason
from kit.core.value import Value
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.context import RunContext
from kit.runtime.dispatch import fan_out
from kit.runtime.pattern import Pattern
from kit.runtime.team import Team
from kit.runtime.turn import Reply, run_turn
from kit.stores.sqlite import SqliteStore
from kit.tools.tool import tool_name

ADMISSIONS: frozenset[Reason] = frozenset({"unanswerable", "insufficient", "low_confidence"})
"""Reasons by which an agent says itself that it has no answer, beside data that failed it; any
other means that it broke."""


class ToolCaseResult(Value):
    """The result of one case."""

    case: ToolCase
    outcome: Outcome
    wrong: str | None = None
    """Why it does not pass, in plain words."""


async def play_cases(team: Team, agent_id: str) -> tuple[ToolCaseResult, ...]:
    """Plays every case of a sub-agent's card, each as a turn that goes to this agent alone, with
    one tool that fails it.

    Raises BindError when a case's tool is not bound, as a new one is not while its flag is off.
    """
    agent = team.agents[agent_id]
    if not isinstance(agent, LLMAgent) or agent.card.eval is None:
        return ()
    results: list[ToolCaseResult] = []
    for case in agent.card.eval.tool_cases:
        results.append(await _play(case, agent, team))
    return tuple(results)


async def _play(case: ToolCase, agent: LLMAgent, team: Team) -> ToolCaseResult:
    name = tool_name(case.tool)
    if name not in agent.tools:
        raise BindError(
            f"tool {case.tool!r} of card {agent.card.id!r} is not bound: load the deck with its flag on"
        )
    tools: Mapping[str, BaseTool] = {**agent.tools, name: _failing_tool(name, case.mode)}
    team = team.with_agents({agent.card.id: replace(agent, tools=MappingProxyType(tools))})

    async def alone(call: AgentCall, ctx: RunContext) -> Outcome:
        return (await fan_out([call.model_copy(update={"agent": agent.card.id})], ctx)).outcomes[0]

    session = Session(id=f"{case.tool} {case.mode}", principal=BENCH_USER)
    with closing(SqliteStore(":memory:")) as store:
        kit = RoutingKit(team, store, pattern=Pattern("alone", alone))
        reply = await run_turn(case.ask, session, kit)
    return ToolCaseResult(case=case, outcome=reply.outcomes[0], wrong=_wrong(case, reply))


def _failing_tool(name: str, mode: ToolMode) -> BaseTool:
    async def call(**_: Any) -> str:
        if mode == "fails":
            raise ConnectionError("made to fail by an evaluation case")
        return ""

    # It takes whatever the model would give the real tool.
    schema: dict[str, Any] = {"type": "object", "title": name, "properties": {}}
    return StructuredTool(
        name=name, description="Lets its caller down.", args_schema=schema, coroutine=call
    )


def _wrong(case: ToolCase, reply: Reply) -> str | None:
    outcome = reply.outcomes[0]
    tools: set[str] = set()
    for event in reply.events:
        if isinstance(event.body, ToolStarted):
            tools.add(event.body.tool)
    if tool_name(case.tool) not in tools:
        return f"{case.tool} was not called"
    if outcome.kind == "failure":
        if outcome.axis == "data" or outcome.reason in ADMISSIONS:
            return None
        return f"the agent failed: {outcome.reason}"
    text = outcome.text.casefold()
    for words in case.never:
        if words.casefold() in text:
            return f"it said {words!r}"
    if case.says and not any(words.casefold() in text for words in case.says):
        return f"it said none of {', '.join(map(repr, case.says))}"
    return None
