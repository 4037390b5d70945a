"""Whether what cards and topologies promise can be kept: what the runtime could not keep is a fault of the deck."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from kit.compose.answer_schema import schema_faults
from kit.compose.parts import Parts
from kit.compose.topology import DRAFT, Topology
from kit.core.card import AgentCard, ToolMode
from kit.core.errors import nearest
from kit.core.model import ModelSpec, fallback_of

WIDTH = (2, 3)
"""How many members a race or an ensemble has."""
Fault = tuple[tuple[str | int, ...], str]
"""Where in the card, and the sentence with the fix."""


def contract_faults(card: AgentCard, models: Mapping[str, ModelSpec]) -> Iterator[Fault]:
    """Faults of one card's contract."""
    for tool in card.tool_grants:
        if tool not in card.tools:
            hint = nearest(tool, card.tools)
            yield (
                ("tool_grants", tool),
                f"a grant for {tool!r}, which the card does not list: {hint}",
            )
    yield from _tool_cases(card)
    if card.handoff.output_schema is not None:
        for sentence in schema_faults(card.handoff.output_schema):
            yield ("handoff", "output_schema"), sentence
    for name, field in card.handoff.fields.items():
        if field.source == "shown" and field.type in ("integer", "number", "boolean"):
            sentence = "ids of what was shown are text; make it a string or an array"
            yield ("handoff", "fields", name), sentence
    fallback = fallback_of(card, models)
    if card.policy.cost is not None:
        for key in dict.fromkeys((card.model, fallback)):
            # What an agent with `run` costs it says itself, or not.
            spec = models.get(key or "")
            if spec is not None and spec.price(1, 1) is None:
                fix = "give it in models.yaml or limit tokens"
                yield ("policy", "cost"), f"the price of model {key!r} is not known; {fix}"
    if card.policy.model_time_ms is not None and card.run is not None:
        sentence = "an agent with `run` makes its own model calls; limit it by time_budget_ms"
        yield ("policy", "model_time_ms"), sentence
    elif card.policy.model_time_ms is not None and fallback is None:
        sentence = "it says when to turn to the fallback model; name one in fallback_model"
        yield ("policy", "model_time_ms"), sentence


def _tool_cases(card: AgentCard) -> Iterator[Fault]:
    """A tool that was added later must be evaluated on each way in which it can let the agent down."""
    cases = card.eval.tool_cases if card.eval is not None else ()
    for index, case in enumerate(cases):
        path = ("eval", "tool_cases", index)
        if case.tool not in card.tools:
            hint = nearest(case.tool, card.tools)
            yield path, f"a case for {case.tool!r}, which the card does not list: {hint}"
        if not case.says and not case.never:
            yield path, "any answer would pass this case; give says, never or both"
    pairs = {(case.tool, case.mode) for case in cases}
    for tool in card.tool_grants:
        missing = " or ".join(mode for mode in get_args(ToolMode) if (tool, mode) not in pairs)
        if missing:
            fault = f"no case in eval.tool_cases has mode {missing} for it; add one of each"
            yield ("tool_grants", tool), f"{tool!r} is new and {fault}"


def topology_faults(parts: Parts) -> Iterator[Fault]:
    """What keeps the topologies of a deck from being carried out: where in deck.yaml, and the sentence with the fix."""
    settings = parts.settings
    if settings.topologies and parts.surface not in settings.topologies:
        hint = nearest(parts.surface, settings.topologies)
        yield ("surface",), f"unknown surface {parts.surface!r}: {hint}"
    root = parts.cards.get(settings.orchestrator)
    for surface, agents in settings.topologies.items():
        for agent, topology in agents.items():
            path = ("topologies", surface, agent)
            if root is not None and agent not in root.sub_agents:
                hint = nearest(agent, root.sub_agents)
                yield path, f"{agent!r} is no sub-agent of {root.id!r}: {hint}"
            # An unknown agent is a fault of the orchestrator's card, which lists it.
            elif agent in parts.cards:
                for fault in _topology_faults(topology, parts.cards[agent], parts):
                    yield path, fault


def _topology_faults(topology: Topology, agent: AgentCard, parts: Parts) -> Iterator[str]:
    cards = parts.cards
    for name in (*topology.members, topology.judge or agent.id):
        if name not in cards:
            yield f"unknown card {name!r}: {nearest(name, cards)}"
            return
    members = [cards[name] for name in topology.members]
    yield from _member_faults(topology, members)
    if len(members) > parts.settings.cap:
        yield f"{len(members)} members count as calls and the cap is {parts.settings.cap}; raise it or list fewer"
    if topology.kind == "ensemble":
        yield from _judge_faults(topology, agent, parts)
    if topology.bar is None:
        return
    # In a pipeline the draft alone is held to the bar.
    for card in members[:1] if topology.kind == "pipeline" else members:
        if not _has(card, "confidence"):
            yield f"{card.id!r} declares no confidence in its output schema, so it cannot be held to a bar"


def _member_faults(topology: Topology, members: Sequence[AgentCard]) -> Iterator[str]:
    fewest, limit = WIDTH
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
            if not fewest <= len(members) <= limit:
                yield f"a {topology.kind} has {fewest} or {limit} members, {len(members)} are listed"


def _judge_faults(topology: Topology, agent: AgentCard, parts: Parts) -> Iterator[str]:
    if topology.judge is None:
        yield "an ensemble needs a judge; name its card"
    elif not _has(parts.cards[topology.judge], "best"):
        yield f"the judge {topology.judge!r} needs an output schema with the field 'best', the number of its choice"
    if agent.eval is None or agent.eval.rubric not in parts.rubrics:
        hint = nearest(agent.eval.rubric if agent.eval else "", parts.rubrics)
        yield f"card {agent.id!r} needs an eval with a rubric to be judged by: {hint}"


def _has(card: AgentCard, name: str) -> bool:
    return f'"{name}"' in json.dumps(card.handoff.output_schema or {})
