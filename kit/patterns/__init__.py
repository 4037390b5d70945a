"""Patterns: short functions over decide, fan_out and compose; all see the same cards, tools, budgets, events."""

from collections.abc import Callable, Mapping

from kit.compose.deck import Deck
from kit.patterns.agents_as_tools import mediated
from kit.patterns.classifier_gateway import classifier_gateway
from kit.patterns.direct_streaming import direct
from kit.patterns.monolith import monolith, one_agent
from kit.patterns.supervisor import supervisor
from kit.patterns.swarm import peers, swarm
from kit.runtime.host import Pattern

PATTERNS: Mapping[str, Pattern] = {
    "mediated": mediated,
    "direct": direct,
    "classifier_gateway": classifier_gateway,
    "monolith": monolith,
    "supervisor": supervisor,
    "swarm": swarm,
}
"""Name -> pattern."""

STAGES: Mapping[str, Callable[[Deck], Deck]] = {"monolith": one_agent, "swarm": peers}
"""Name -> the deck a pattern needs in place of the one it is given; bound to the same models and tools."""
