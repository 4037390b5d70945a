"""Guards switched on and off over the parity set: which scenarios each one saves, which it costs, and in how many model calls."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from langchain_core.messages import BaseMessage, ToolMessage

from kit.bench.routing import Stub, kept_by
from kit.compose.deck import Deck, DeckSettings
from kit.compose.parts import Guards
from kit.core.card import AgentCard
from kit.core.event import Guarded
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.host import Host
from kit.runtime.team import Team, bind
from studies.routing_parity import Scenario, run_scenario

GUARDS = tuple(Guards.model_fields)
"""Names of the guards, in the order in which they are declared."""
_RETRY = "<missing_calls>"
"""How a second decision is asked for (kit/runtime/guards/failsafe.py)."""


class Trial(NamedTuple):
    """One scenario under one setting of the guards; a list of them is a tidy frame."""

    setting: str
    scenario: str
    category: str
    agents: bool
    """The right sub-agents were asked."""
    words: bool
    """And in the right words."""
    model_calls: int
    """Of the orchestrator."""
    acted: tuple[tuple[str, str, str], ...]
    """What the guards did: guard, action, reason."""


def settings() -> dict[str, Guards]:
    """All on, all off, and for each guard the deck without it and the deck with it alone."""
    none = dict.fromkeys(GUARDS, False)
    found = {"all on": Guards()}
    found |= {f"without {guard}": Guards(**{guard: False}) for guard in GUARDS}
    found |= {f"{guard} alone": Guards(**{**none, guard: True}) for guard in GUARDS}
    return {**found, "all off": Guards(**none)}


def erring(scenario: Scenario) -> ScriptedModel:
    """An orchestrator's model that errs as the scenario says; by default it words a single request anew."""
    single = len(scenario.calls) == 1 and bool(scenario.user)
    asked = [(agent, "a request in other words" if single else query) for agent, query in scenario.calls]
    lines = [
        Line(said.text or "Let me look.", calls=[_call(c.agent, c.query or scenario.user, said.intents) for c in said.calls])
        for said in scenario.model
    ] or [Line("Let me look.", calls=[_call(agent, query, len(asked)) for agent, query in asked])]

    def say(messages: list[BaseMessage]) -> Line:
        if isinstance(messages[-1], ToolMessage):
            return Line("Here is what I found.")
        return lines[-1] if _RETRY in str(messages[0].content) else lines[0]

    return ScriptedModel(say)


def erring_team(scenario: Scenario, agents: Sequence[str]) -> Team:
    """That model over stubs of these sub-agents, set up as the consumer deck is."""
    subs = [AgentCard(id=agent, description=f"Answers about {agent}.", model="offline") for agent in agents]
    root = AgentCard(id="orchestrator", description="Routes.", model="offline", sub_agents=tuple(agents))
    chosen = DeckSettings(orchestrator=root.id, default_sub_agent="shop", support_agent="support")
    return bind(Deck.of([root, *subs], settings=chosen, name="parity"), {"*": "offline", root.id: erring(scenario)}, {})


async def trials(
    scenarios: Sequence[Scenario],
    settings: Mapping[str, Guards],
    agents: Sequence[str],
    team: Team | None = None,
    keep: Host | None = None,
) -> list[Trial]:
    """Every scenario under every setting, over stub sub-agents. `team` routes by itself; None errs as each scenario says.

    The turns are kept where `keep` keeps its own; None keeps nothing.
    """
    found: list[Trial] = []
    first = kept_by(keep, team or erring_team(scenarios[0], agents))
    for scenario in scenarios:
        bound = team or erring_team(scenario, agents)
        bound = bound.with_agents({card.id: Stub(card) for card in bound.orchestrator.sub_cards.values()})
        for name, guards in settings.items():
            kit = replace(first, team=_guarded(bound, guards))
            verdict, reply = await run_scenario(scenario, kit)
            bodies = [event.body for event in reply.events if isinstance(event.body, Guarded)]
            acted = tuple((body.guard, body.action, body.reason) for body in bodies)
            calls = reply.usage.model_calls
            found.append(Trial(name, scenario.id, scenario.category, verdict.agents_right, verdict.right, calls, acted))
    if keep is None:
        first.store.close()
    return found


def _guarded(team: Team, guards: Guards) -> Team:
    chosen = team.deck.settings.model_copy(update={"guards": guards})
    return replace(team, deck=replace(team.deck, settings=chosen))


def _call(agent: str, query: str, intents: int) -> tuple[str, dict[str, object]]:
    return f"ask_{agent}", {"query": query, "intent_count": intents}
