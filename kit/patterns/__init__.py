"""Patterns: short functions over decide, fan_out and compose; all see the same cards, tools, budgets, events."""

from collections.abc import Mapping

from kit.compose.registry import Registry
from kit.patterns.a2a import A2A
from kit.patterns.agents_as_tools import MEDIATED
from kit.patterns.classifier_gateway import CLASSIFIER_GATEWAY
from kit.patterns.direct_streaming import DIRECT
from kit.patterns.monolith import MONOLITH
from kit.patterns.plan_execute import PLAN_EXECUTE
from kit.patterns.supervisor import SUPERVISOR
from kit.patterns.swarm import SWARM
from kit.runtime.pattern import Pattern

_OFFERED = (MEDIATED, DIRECT, CLASSIFIER_GATEWAY, MONOLITH, SUPERVISOR, SWARM, A2A)
PATTERNS: Mapping[str, Pattern] = Registry(
    "pattern", ((pattern.name, pattern) for pattern in _OFFERED)
)
"""Name -> pattern, in the order in which they are offered; a wrong name raises UnknownId with the nearest ones."""
MODES: Mapping[str, Pattern] = Registry(
    "pattern", ((pattern.name, pattern) for pattern in (*_OFFERED, PLAN_EXECUTE))
)
"""Every way to run a turn: the patterns that any deck can be compared on, and the plans of decks that have skills."""


def pattern_of(choice: str | Pattern) -> Pattern:
    """A pattern by name, or one of one's own as it is. Raises UnknownId."""
    if isinstance(choice, str):
        return MODES[choice]
    return choice
