"""Monolith: one agent with every tool and every prompt of the deck, and nobody to ask."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from langchain_core.messages.tool import ToolCall

from kit.compose.deck import Deck
from kit.compose.registry import Registry
from kit.core.card import AgentCard
from kit.core.outcome import NO_ANSWER, OF_MODEL, AgentCall, Answer, Failure, Outcome, Timing
from kit.patterns.agents_as_tools import MAX_ROUNDS, check_composition, outcome_of
from kit.runtime.agents.agent_outcome import answer_parts, data_reason
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.answer.help import nobody_can
from kit.runtime.answer.raw_text import scrub
from kit.runtime.context import Agent, RunContext
from kit.runtime.pattern import Pattern
from kit.tools.tool import ToolResult


def one_agent(deck: Deck) -> Deck:
    """The same deck with the orchestrator holding all tools and blocks of its sub-agents, which
    nobody calls any more."""
    lead = deck.cards[deck.settings.orchestrator]
    cards = (lead, *deck.active_sub_agents(lead))
    own: list[str] = []
    for block in lead.prompt_blocks:
        if deck.blocks[block].category != "instructions":
            own.append(block)
    union = lead.model_copy(
        update={
            "tools": tuple(dict.fromkeys(tool for card in cards for tool in deck.tools_on(card))),
            "tool_grants": {},
            "tool_config": {
                tool: config for card in cards for tool, config in card.tool_config.items()
            },
            "prompt_blocks": tuple(
                dict.fromkeys(
                    [*own, *(block for card in cards[1:] for block in card.prompt_blocks)]
                )
            ),
            "sub_agents": (),
        }
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
        thread += [reply.message, *(message for message, _ in tool_runs)]
        results += zip(reply.calls, (result for _, result in tool_runs), strict=True)
        clean = _note_parts(results, call, ctx) and not ctx.turn.left_out().count
        reply = (await lead.compose(thread, call, ctx, live=clean, news=len(tool_runs))).reply
    if reply.text.startswith(NO_ANSWER):
        text = nobody_can(ctx)
    else:
        text = reply.text.strip()
    return outcome_of(
        await check_composition(text, lead, thread, call, ctx, clean=clean)
        if results
        else scrub(text, ctx),
        call,
    )


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
    outcomes = [_part(agent, mine, now) for agent, mine in parts.items()]
    ctx.turn.record(
        outcomes, [AgentCall(call_id=o.call_id, agent=o.agent, query=call.query) for o in outcomes]
    )
    for outcome in outcomes:
        if not (isinstance(outcome, Answer) and not outcome.reservation):
            return False
    return True


def _part(agent: str, mine: Sequence[tuple[ToolCall, ToolResult]], timing: Timing) -> Outcome:
    call_id = mine[0][0]["id"] or agent
    faults: list[ToolResult] = []
    for _, result in mine:
        if result.fault:
            faults.append(result)
    if len(faults) == len(mine):
        reason, detail = data_reason(faults)
        return Failure(
            call_id=call_id, agent=agent, axis="data", reason=reason, detail=detail, timing=timing
        )
    text = "\n".join(result.text for _, result in mine if not result.fault)
    return Answer(call_id=call_id, agent=agent, text=text, timing=timing, **answer_parts(mine))


def tool_owners(agents: Mapping[str, Agent], lead: str) -> dict[str, str]:
    """A tool's name, as models read it -> the agent that holds it, the first where several do."""
    owners: dict[str, str] = {}
    for agent in agents.values():
        card: AgentCard = agent.card
        if isinstance(agent, LLMAgent):
            names = agent.tools
        else:
            names = card.tools
        for tool in names if card.id != lead else ():
            owners.setdefault(tool, card.id)
    return owners
