"""Guards switched on and off over the parity set: which scenarios each one saves, which it spoils,
and its model calls."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from langchain_core.messages import BaseMessage, ToolMessage

from kit.bench.routing import Stub
from kit.compose.parts import Guards
from kit.core.bodies.guard import GuardActed
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.handle import Host
from kit.runtime.team import Team, bind
from studies.routing_parity import Scenario, run_scenario
from studies.study_deck import ORCHESTRATOR, kept_by, plain_cards, study_deck

GUARDS = tuple(Guards.model_fields)
"""Names of the guards, in the order in which they are declared."""
_RETRY = "<missing_calls>"
"""The mark of a prompt that asks for a second decision (kit/runtime/guards/checks.py)."""


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
    """Returns every setting to compare: all on, all off, and for each guard the deck without it and with it alone."""
    none = dict.fromkeys(GUARDS, False)
    without = {f"without {guard}": Guards(**{guard: False}) for guard in GUARDS}
    alone = {f"{guard} alone": Guards(**{**none, guard: True}) for guard in GUARDS}
    return {"all on": Guards(), **without, **alone, "all off": Guards(**none)}


def erring_model(scenario: Scenario) -> ScriptedModel:
    """Scripts an orchestrator's model that errs as the scenario says; by default it words a single request anew."""
    single = len(scenario.calls) == 1 and bool(scenario.user)
    calls = [
        (agent, "a request in other words" if single else query) for agent, query in scenario.calls
    ]
    lines = [
        Line(
            reply.text or "Let me look.",
            calls=[_call(c.agent, c.query or scenario.user, reply.intents) for c in reply.calls],
        )
        for reply in scenario.script
    ] or [Line("Let me look.", calls=[_call(agent, query, len(calls)) for agent, query in calls])]

    def say(messages: list[BaseMessage]) -> Line:
        if isinstance(messages[-1], ToolMessage):
            return Line("Here is what I found.")
        return lines[-1] if _RETRY in str(messages[0].content) else lines[0]

    return ScriptedModel(say)


def erring_team(scenario: Scenario, agents: Sequence[str]) -> Team:
    """Binds that model over these sub-agents, with the cap and the defaults of the consumer deck."""
    deck = study_deck(plain_cards(agents), cap=4, default_sub_agent="shop", support_agent="support")
    return bind(deck, {"*": "offline", ORCHESTRATOR: erring_model(scenario)}, {})


async def play_trials(
    scenarios: Sequence[Scenario],
    settings: Mapping[str, Guards],
    agents: Sequence[str],
    team: Team | None = None,
    keep: Host | None = None,
) -> list[Trial]:
    """Plays every scenario under every setting, over stub sub-agents. `team` routes by itself; None
    errs as each scenario says.

    The turns are stored where `keep` stores its own; None stores nothing.
    """
    rows: list[Trial] = []
    first = kept_by(keep, team or erring_team(scenarios[0], agents))
    for scenario in scenarios:
        bound = team or erring_team(scenario, agents)
        bound = bound.with_agents(
            {card.id: Stub(card) for card in bound.orchestrator.sub_cards.values()}
        )
        for name, guards in settings.items():
            kit = replace(first, team=_with_guards(bound, guards))
            verdict, reply = await run_scenario(scenario, kit)
            bodies = [event.body for event in reply.events if isinstance(event.body, GuardActed)]
            acted = tuple((body.guard, body.action, body.reason) for body in bodies)
            calls = reply.usage.model_calls
            rows.append(
                Trial(
                    name,
                    scenario.id,
                    scenario.category,
                    verdict.agents_right,
                    verdict.right,
                    calls,
                    acted,
                )
            )
    if keep is None:
        first.store.close()
    return rows


def _with_guards(team: Team, guards: Guards) -> Team:
    settings = team.deck.settings.model_copy(update={"guards": guards})
    return replace(team, deck=replace(team.deck, settings=settings))


def _call(agent: str, query: str, intents: int) -> tuple[str, dict[str, object]]:
    return f"ask_{agent}", {"query": query, "intent_count": intents}
