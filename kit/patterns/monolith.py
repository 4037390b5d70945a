"""Monolith: one agent with every tool and every prompt of the deck, and nobody to ask."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages.tool import ToolCall

from kit.compose.deck import Deck
from kit.compose.registry import Registry
from kit.core.card import AgentCard
from kit.core.errors import BindError
from kit.core.outcome import NO_ANSWER, OF_MODEL, AgentCall, Answer, Failure, Outcome, Timing
from kit.patterns.agents_as_tools import MAX_ROUNDS, outcome_of
from kit.runtime.agents.contract import answer_parts, data_reason
from kit.runtime.agents.llm_agent import LLMAgent, shown_pictures
from kit.runtime.answer.acknowledge import acknowledge, of_nobody
from kit.runtime.answer.owed import nobody_can
from kit.runtime.context import Agent, RunContext
from kit.runtime.pattern import Pattern
from kit.tools.tool import ToolResult


def one_agent(deck: Deck) -> Deck:
    """The same deck with the orchestrator holding all tools and blocks of its sub-agents, which
    nobody calls any more. Raises BindError for one that brings its own."""
    lead = deck.cards[deck.settings.orchestrator]
    cards = (lead, *deck.active_sub_agents(lead))
    for card in cards:
        if card.run is not None:
            raise BindError(
                f"card {card.id!r} runs {card.run}: a monolith holds the tools of its agents, and "
                "that one's are not the kit's; choose another pattern"
            )
    blocks = deck.blocks_without_routing(lead)
    tools: list[str] = []
    tool_config: dict[str, Mapping[str, Any]] = {}
    for card in cards:
        tools += deck.tools_on(card)
        tool_config.update(card.tool_config)
        if card is not lead:
            blocks += card.prompt_blocks
    union = lead.replace(
        tools=tuple(dict.fromkeys(tools)),
        tool_grants={},
        tool_config=tool_config,
        prompt_blocks=tuple(dict.fromkeys(blocks)),
        sub_agents=(),
    )
    settings = deck.settings.model_copy(update={"default_sub_agent": None, "support_agent": None})
    return replace(deck, cards=Registry("card", {**deck.cards, union.id: union}), settings=settings)


async def run_monolith(call: AgentCall, ctx: RunContext) -> Outcome:
    """Model and tools until there is nothing more to call. A tool call stands for the part of the
    agent whose tool it is.

    So the same acknowledgement holds: a part of which every tool failed is owned up to.
    """
    lead = ctx.turn.agents[call.agent]
    assert isinstance(lead, LLMAgent)
    thread = lead.open(call, ctx)
    reply = (await lead.decide(thread, call, ctx)).reply
    results: list[tuple[ToolCall, ToolResult]] = []
    clean = True
    while reply.calls and ctx.turn.rounds < MAX_ROUNDS:
        ctx.turn.open_round(())
        ctx.ledger.before_tools(len(reply.calls))
        tool_runs = await lead.call_tools(
            reply.calls, ctx, tool_owners(ctx.turn.agents, call.agent)
        )
        thread.append(reply.message)
        for tool_call, (message, result) in zip(reply.calls, tool_runs, strict=True):
            thread.append(message)
            results.append((tool_call, result))
        pictures = shown_pictures(tool_runs)
        thread += pictures
        clean = _note_parts(results, call, ctx) and not ctx.turn.coverage().left_out.count
        # What was done is told once the text has been held against it.
        live = clean and not ctx.turn.acts.entries
        reply = (
            await lead.compose(thread, call, ctx, live=live, news=len(tool_runs) + len(pictures))
        ).reply
    text = reply.text.strip()
    if reply.text.startswith(NO_ANSWER):
        text = nobody_can(ctx)
        if not results:
            return call.failed("refusal", "the model says that it has no answer", text)
    if results:
        text = await acknowledge(text, lead, thread, call, ctx, clean=clean)
    else:
        text = of_nobody(text, ctx)
    return outcome_of(text, call)


MONOLITH = Pattern(
    "monolith",
    run_monolith,
    lambda deck, bind: bind(one_agent(deck)),
)


def _note_parts(
    results: Sequence[tuple[ToolCall, ToolResult]], call: AgentCall, ctx: RunContext
) -> bool:
    """Keeps what became of each agent's part: an answer when one of its tools gave data. True when nothing is owed."""
    owners = tool_owners(ctx.turn.agents, call.agent)
    parts: dict[str, list[tuple[ToolCall, ToolResult]]] = {}
    for tool_call, result in results:
        if tool_call["name"] in owners and result.fault not in OF_MODEL:
            parts.setdefault(owners[tool_call["name"]], []).append((tool_call, result))
    now = Timing(started=0.0, ended=ctx.turn.log.now())
    outcomes: list[Outcome] = []
    calls: list[AgentCall] = []
    owes_nothing = True
    for agent, tool_results in parts.items():
        outcome = _part(agent, tool_results, now)
        outcomes.append(outcome)
        calls.append(AgentCall(call_id=outcome.call_id, agent=agent, query=call.query))
        if not isinstance(outcome, Answer) or outcome.reservation:
            owes_nothing = False
    ctx.turn.record(outcomes, calls)
    return owes_nothing


def _part(agent: str, results: Sequence[tuple[ToolCall, ToolResult]], timing: Timing) -> Outcome:
    call_id = results[0][0]["id"] or agent
    faults: list[ToolResult] = []
    texts: list[str] = []
    for _, result in results:
        if result.fault not in (None, "uncertain"):
            faults.append(result)
        else:
            texts.append(result.text)
    if len(faults) == len(results):
        reason, detail = data_reason(faults)
        return Failure(
            call_id=call_id, agent=agent, axis="data", reason=reason, detail=detail, timing=timing
        )
    fields = answer_parts(results)
    return Answer(call_id=call_id, agent=agent, text="\n".join(texts), timing=timing, **fields)


def tool_owners(agents: Mapping[str, Agent], lead: str) -> dict[str, str]:
    """A tool's name, as models read it -> the agent that holds it, the first where several do."""
    owners: dict[str, str] = {}
    for agent in agents.values():
        card: AgentCard = agent.card
        if card.id == lead:
            continue
        names = agent.tools if isinstance(agent, LLMAgent) else card.tools
        for tool in names:
            owners.setdefault(tool, card.id)
    return owners
