"""Swarm: nobody routes; the agent that holds the conversation answers its part and hands it to the
next card as an outcome."""

from dataclasses import replace

from kit.compose.deck import Block, Deck
from kit.compose.registry import Registry
from kit.core.outcome import AgentCall, Answer, FanOut, Outcome
from kit.patterns.live_slot import live_slot, slot_outcome
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.context import RunContext
from kit.runtime.pattern import Pattern

HOLD = """You share this conversation with other specialists, and you hold it now. Answer the part that is yours, \
then hand the rest over by calling the one whose part it is. When nothing of it is yours, hand it over without a word.
Your part: {part}"""


def peers(deck: Deck) -> Deck:
    """The same deck with every sub-agent able to call every other one: a call is a hand-over, and
    runs nothing by itself."""
    members = deck.active_sub_agents(deck.cards[deck.settings.orchestrator])
    ids = [card.id for card in members]
    cards = dict(deck.cards)
    blocks = dict(deck.blocks)
    for card in members:
        part = " ".join(card.description.split())
        hold = Block(
            id=f"swarm-{card.id}",
            category="instructions",
            owner="platform",
            text=HOLD.format(part=part),
        )
        peer_ids = tuple(agent_id for agent_id in ids if agent_id != card.id)
        blocks[hold.id] = hold
        cards[card.id] = card.replace(
            sub_agents=peer_ids, prompt_blocks=(*card.prompt_blocks, hold.id)
        )
    return replace(deck, cards=Registry("card", cards), blocks=Registry("block", blocks))


async def run_swarm(call: AgentCall, ctx: RunContext) -> Outcome:
    """Whoever spoke last gets the whole message; it travels from hand to hand until nobody hands it
    on. The cap counts hands."""
    lead = ctx.turn.agents[call.agent]
    assert isinstance(lead, LLMAgent)
    holder: str | None = _entry(lead, ctx)
    earlier: list[str] = []
    async with live_slot(ctx) as slot:
        while holder is not None:
            ask = AgentCall(
                call_id=f"hand-{len(earlier) + 1}",
                agent=holder,
                query=call.query,
                prior_context="\n".join(earlier) or None,
            )
            fan = await slot.ask([ask])
            for outcome in fan.outcomes:
                text = outcome.text if isinstance(outcome, Answer) else ""
                earlier.append(f"Answered already by {outcome.agent}: {text}")
            holder = _next(fan, ctx)
    return slot_outcome(slot, call, ctx)


SWARM = Pattern(
    "swarm",
    run_swarm,
    lambda deck, bind: bind(peers(deck)),
)


def _entry(lead: LLMAgent, ctx: RunContext) -> str | None:
    """Returns who holds the conversation at first: the last agent of the turn before, else the
    default, else the first member."""
    members = [card.id for card in lead.sub_cards.values()]
    candidates = (
        *reversed(ctx.turn.dynamic.in_play),
        ctx.turn.settings.default_sub_agent,
        *members,
    )
    for agent in candidates:
        if agent in members:
            return agent
    return None


def _next(fan: FanOut, ctx: RunContext) -> str | None:
    """Returns the agent that the conversation was handed to; None for one that has held it in this turn already."""
    over = None
    for outcome in fan.outcomes:
        if isinstance(outcome, Answer):
            over = outcome.hands_to
            break
    if over is None:
        return None
    # Two that each take the other for the right one would pass the message to and fro.
    if any(outcome.agent == over.agent for outcome in ctx.turn.outcomes):
        reason = "it has held the conversation in this turn already"
        ctx.guarded("no_return", "dropped", reason, over)
        return None
    ctx.turn.emitted_later += 1
    return over.agent
