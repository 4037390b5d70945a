"""Which cap: what a limit on sub-agents a message costs in parts left out, and what it saves in time and tokens.

Models are simulated; the turns, the cap, the refusal of what is over it and the reply's words for it are the real ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from kit.bench.case import read_cases
from kit.bench.grid.simulated_tools import simulated_tools
from kit.bench.home import HOME
from kit.bench.routing import RoutingKit
from kit.bench.statistics.estimate import Estimate
from kit.bench.statistics.means import stratified
from kit.compose.deck import load_deck
from kit.core.context import Principal, Session
from kit.core.simulation import Law, Part, Truth
from kit.models.simulated import SimulatedModel, known
from kit.runtime.clock import run_virtual
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from kit.worlds.consumer.toolbox import TOOL_IDS


class Capped(NamedTuple):
    """One turn; a list of them is a tidy frame."""

    parts: int
    """Sub-agents the message is for."""
    cap: int
    message: int
    """Place among the messages of so many parts: the same for every cap."""
    seconds: float
    """Until the last word, virtual."""
    coverage: float
    """Share of the parts that were answered."""
    read: int
    wrote: int
    """Tokens, by all models of the turn."""


def capped(law: Law, messages: int = 16, sizes: Iterable[int] = range(1, 9), seed: int = 7) -> list[Capped]:
    """Turns of every size at every cap from 1 to 8, in virtual time; blocks, so call it in a thread where a loop runs.

    A message of several parts is as many single cases of data/cases, joined. A cap that leaves nothing out is played once: the
    draws of a message are those of its name, whatever the cap.
    """
    deck = load_deck(HOME / "cards" / "consumer", TOOL_IDS)
    subs = deck.active_sub_agents(deck.cards[deck.settings.orchestrator])
    asks: dict[str, list[str]] = {card.id: [] for card in subs}
    for case in read_cases(HOME / "data" / "cases" / "single.jsonl"):
        if len(case.turns) == 1 and len(case.turns[0].expected) == 1:
            asks[case.turns[0].expected[0]].append(case.turns[0].user)
    kit = RoutingKit(bind(deck, SimulatedModel(name="simulated", law=law, seed=seed), simulated_tools(deck)))
    tools = {card.id: card.tools[0] for card in subs if card.tools}

    async def play() -> list[Capped]:
        found: list[Capped] = []
        for parts, message in product(sizes, range(messages)):
            agents = [list(asks)[(message + place) % len(asks)] for place in range(parts)]
            told = tuple(Part(agent=a, query=asks[a][message % len(asks[a])], tool=tools.get(a)) for a in agents)
            played = {cap: await _one(kit, told, cap, message) for cap in range(1, parts + 1)}
            found += [played[min(cap, parts)]._replace(cap=cap) for cap in range(1, len(asks) + 1)]
        kit.store.close()
        return found

    return run_virtual(play())


async def _one(kit: RoutingKit, parts: Sequence[Part], cap: int, message: int) -> Capped:
    text = " Also, ".join(part.query for part in parts)
    session = Session(id=f"{len(parts)}-{message}-{cap}", principal=Principal(tenant_id="acme", user_id="u-001"))
    with known(Truth(case=f"{len(parts)} parts, message {message}", parts=tuple(parts))):
        turn = run_turn(text, session, kit, cap=cap, history=(), in_play=())
    reply = await turn
    answered = {outcome.agent for outcome in reply.outcomes if outcome.kind == "answer"}
    covered = sum(part.agent in answered for part in parts) / len(parts)
    usage = reply.usage
    return Capped(len(parts), cap, message, reply.events[-1].at, covered, usage.input_tokens, usage.output_tokens)


class Choice(NamedTuple):
    """One cap over a traffic of messages of all sizes."""

    cap: int
    covered: Estimate
    """Share of all parts asked for that were answered."""
    seconds: Estimate
    """Mean."""
    tokens: Estimate
    """Mean of a message."""
    left_out: float
    """Share of messages that ask for more than the cap."""


def choices(runs: Sequence[Capped], traffic: Mapping[int, float]) -> list[Choice]:
    """What every cap means for a traffic, given as size -> share of messages (any sum). Intervals at 95 %, by stratum."""
    whole = sum(traffic.values())
    shares = {size: share / whole for size, share in traffic.items()}
    asked = sum(size * share for size, share in shares.items())
    of_parts = {size: size * share / asked for size, share in shares.items()}
    found: list[Choice] = []
    for cap in sorted({run.cap for run in runs}):
        mine = {size: [run for run in runs if (run.cap, run.parts) == (cap, size)] for size in shares}
        covered = stratified({size: [run.coverage for run in group] for size, group in mine.items()}, of_parts)
        seconds = stratified({size: [run.seconds for run in group] for size, group in mine.items()}, shares)
        tokens = stratified({size: [float(run.read + run.wrote) for run in group] for size, group in mine.items()}, shares)
        found.append(Choice(cap, covered, seconds, tokens, sum(share for size, share in shares.items() if size > cap)))
    return found
