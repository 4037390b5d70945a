"""Whether the topologies of a deck can be carried out by its cards."""

import json
from collections.abc import Iterator, Sequence

from kit.compose.contract_check import Fault
from kit.compose.parts import Parts
from kit.compose.topology import DRAFT, Topology
from kit.core.card import AgentCard
from kit.core.errors import nearest

WIDTH = (2, 3)
"""How many members a race or an ensemble has."""


def topology_faults(parts: Parts) -> Iterator[Fault]:
    """What keeps the topologies of a deck from being carried out: where in deck.yaml, and the sentence with the fix."""
    settings = parts.settings
    if settings.topologies and parts.surface not in settings.topologies:
        yield (
            ("surface",),
            f"unknown surface {parts.surface!r}: {nearest(parts.surface, settings.topologies)}",
        )
    root = parts.cards.get(settings.orchestrator)
    for surface, agents in settings.topologies.items():
        for agent, topology in agents.items():
            path = ("topologies", surface, agent)
            if root is not None and agent not in root.sub_agents:
                yield (
                    path,
                    f"{agent!r} is no sub-agent of {root.id!r}: {nearest(agent, root.sub_agents)}",
                )
            elif agent in parts.cards:
                for fault in _faults(topology, parts.cards[agent], parts):
                    yield path, fault


def _faults(topology: Topology, agent: AgentCard, parts: Parts) -> Iterator[str]:
    cards = parts.cards
    unknown: list[str] = []
    for name in (*topology.members, topology.judge or agent.id):
        if name not in cards:
            unknown.append(name)
    if unknown:
        yield f"unknown card {unknown[0]!r}: {nearest(unknown[0], cards)}"
        return
    members = [cards[name] for name in topology.members]
    yield from _member_faults(topology, members)
    if len(members) > parts.settings.cap:
        yield f"{len(members)} members count as calls and the cap is {parts.settings.cap}; raise it or list fewer"
    if topology.kind == "ensemble":
        yield from _judge_faults(topology, agent, parts)
    if topology.kind == "pipeline":
        candidates = members[:1]
    else:
        candidates = members
    for card in candidates if topology.bar is not None else ():
        if not _has(card, "confidence"):
            yield f"{card.id!r} declares no confidence in its output schema, so it cannot be held to a bar"


def _member_faults(topology: Topology, members: Sequence[AgentCard]) -> Iterator[str]:
    least, most = WIDTH
    match topology.kind:
        case "delegate":
            if members:
                yield "a delegate has no members; take them out or choose race, ensemble or pipeline"
        case "pipeline":
            if len(members) != 2:
                yield f"a pipeline is two agents, {len(members)} are listed"
            elif DRAFT not in members[1].handoff.fields:
                yield (
                    f"the second agent {members[1].id!r} has no hand-off field {DRAFT!r}; "
                    f"declare it, so that a draft may cross"
                )
        case _:
            if not least <= len(members) <= most:
                yield f"a {topology.kind} has {least} or {most} members, {len(members)} are listed"


def _judge_faults(topology: Topology, agent: AgentCard, parts: Parts) -> Iterator[str]:
    if topology.judge is None:
        yield "an ensemble needs a judge; name its card"
    elif not _has(parts.cards[topology.judge], "best"):
        yield f"the judge {topology.judge!r} needs an output schema with the field 'best', the number of its choice"
    if agent.eval is None or agent.eval.rubric not in parts.rubrics:
        if agent.eval is not None:
            rubric = agent.eval.rubric
        else:
            rubric = ""
        yield f"card {agent.id!r} needs an eval with a rubric to be judged by: {nearest(rubric, parts.rubrics)}"


def _has(card: AgentCard, name: str) -> bool:
    return f'"{name}"' in json.dumps(card.handoff.output_schema or {})
