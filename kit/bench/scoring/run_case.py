"""Plays one case on one kit: the real turn with the conversation, the faults and the sub-agents'
words that the case holds."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from kit.bench.case import ANYBODY, Ask, Case
from kit.bench.routing import Stub
from kit.bench.scoring.observation import Observation, observe
from kit.core.context import Session
from kit.core.fault import Fault, parse_all
from kit.core.fault_injection import inject_faults
from kit.core.record import Message
from kit.core.simulation import Part, Truth
from kit.models.simulated import use_truth
from kit.runtime.handle import Host, Reply
from kit.runtime.pattern import Pattern
from kit.runtime.turn import run_turn

K = TypeVar("K", bound=Host)


async def run_case(
    case: Case,
    kit: Host,
    pattern: Pattern | None = None,
    *,
    session: str | None = None,
    repeat: int = 0,
    tools: Mapping[str, str] | None = None,
    run: Callable[..., Awaitable[Reply]] = run_turn,
    landed: set[Fault] | None = None,
) -> list[tuple[Observation, Reply]]:
    """Plays the scored turns of a case, in order; what was seen of each, and its whole reply.

    Earlier turns are told as history, with the replies the case holds; of a `live` case the store
    remembers them. `session` names the session and its turns (`turn_id`), where one store sees the
    same case more than once. Simulated models are told what is right: their draws are those of
    case, turn and `repeat`, and an agent calls the one of `tools` (card id -> tool) that is its
    own. `run` starts a turn, as run_turn does. Faults need a kit opened with them. Faults that
    happened in any of its turns are added to `landed`. Raises FaultError or UnknownId for a fault
    that this kit cannot have.
    """
    host = plant_answers(kit, case)
    faults = parse_all(case.faults, host.team.agents, host.team.root)
    owner = Session(id=session or case.id, principal=case.principal)
    labels = {card.id: card.name for card in host.team.orchestrator.sub_cards.values() if card.name}
    history: list[Message] = []
    in_play: tuple[str, ...] = ()
    turns: list[tuple[Observation, Reply]] = []
    for number, ask in enumerate(case.turns):
        # A turn that is not scored was played by whoever wrote the case.
        if ask.skip:
            in_play = ask.expected or in_play
        else:
            with (
                inject_faults(faults) as injection,
                use_truth(truth_of(f"{case.id}-{number}#{repeat}", ask, tools or {})),
            ):
                turn = run(
                    ask.user,
                    owner,
                    host,
                    pattern,
                    history=None if case.live else tuple(history),
                    in_play=None if case.live else in_play,
                    turn_id=turn_id(session, number) if session else None,
                    images=ask.pictures,
                )
            reply = await turn
            if landed is not None:
                landed |= injection.landed
            in_play = reply.routing.invoked or in_play
            turns.append((observe(reply.events, number, labels), reply))
        history += ask.messages(f"{case.id}-{number}")
    return turns


def turn_id(session: str, number: int) -> str:
    """The id of a turn of a named session: of 32 characters where the session's is the key of a cell."""
    return f"{session}{number:08x}"


def turn_of(row: Mapping[str, Any]) -> str:
    """The id that a row's turn has in traces: the key that it was played under, where a later judge scored it."""
    return turn_id(row.get("played_as", row["cell"]), row["turn"])


def truth_of(name: str, ask: Ask, tools: Mapping[str, str]) -> Truth:
    """What is right for one turn; `tools` maps card ids to the tool that each needs."""
    parts: list[Part] = []
    for agent in ask.expected:
        query = ask.queries.get(agent, ask.user)
        parts.append(Part(agent=agent, query=query, tool=tools.get(agent)))
    return Truth(case=name, parts=tuple(parts))


def plant_answers(kit: K, case: Case) -> K:
    """The same kit, in which the agents whose words the case holds say these words and do nothing else."""
    lines: dict[str, dict[str, str]] = defaultdict(dict)
    cards = kit.team.orchestrator.sub_cards.values()
    for ask in case.turns:
        for agent, text in ask.answers.items():
            agents = [card.id for card in cards] if agent == ANYBODY else [agent]
            for name in agents:
                lines[name][ask.user] = text
    if not lines:
        return kit
    stubs: dict[str, Stub] = {}
    for agent, answers in lines.items():
        stubs[agent] = Stub(kit.team.agents[agent].card, lines=answers)
    return replace(cast(Any, kit), team=kit.team.with_agents(stubs))
