"""Patterns: short functions over decide, fan_out and compose; all see the same cards, tools, budgets, events."""

from collections.abc import Callable, Mapping

from kit.compose.deck import Deck
from kit.patterns.a2a import a2a, behind_a2a
from kit.patterns.agents_as_tools import mediated
from kit.patterns.classifier_gateway import classifier_gateway
from kit.patterns.direct_streaming import direct
from kit.patterns.monolith import monolith, one_agent
from kit.patterns.supervisor import supervisor
from kit.patterns.swarm import peers, swarm
from kit.runtime.host import Pattern
from kit.runtime.team import Team

PATTERNS: Mapping[str, Pattern] = {
    "mediated": mediated,
    "direct": direct,
    "classifier_gateway": classifier_gateway,
    "monolith": monolith,
    "supervisor": supervisor,
    "swarm": swarm,
    "a2a": a2a,
}
"""Name -> pattern."""

Bind = Callable[[Deck], Team]
Stage = Callable[[Deck, Bind], Team]
STAGES: Mapping[str, Stage] = {
    "monolith": lambda deck, bind: bind(one_agent(deck)),
    "swarm": lambda deck, bind: bind(peers(deck)),
    "a2a": behind_a2a,
}
"""Name -> the team a pattern needs in place of the deck's own, bound from the same cards to the same models and tools."""


def staged(name: str, deck: Deck, bind: Bind) -> Team:
    """The team a pattern runs with; `bind` makes a team of a deck."""
    return STAGES[name](deck, bind) if name in STAGES else bind(deck)
