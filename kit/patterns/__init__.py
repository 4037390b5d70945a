"""Patterns: short functions over decide, fan_out and compose; all see the same cards, tools, budgets, events."""

from collections.abc import Mapping
from dataclasses import replace

from kit.compose.deck import Deck
from kit.compose.registry import Registry
from kit.core.errors import CodeError
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


def modes_of(deck: Deck) -> Mapping[str, Pattern]:
    """Every way to run a turn of this deck: the kit's and those that deck.yaml names under
    `patterns:`. Raises CodeError for a name that the kit has given away."""
    if not deck.code.patterns:
        return MODES
    modes = dict(MODES)
    for name, code in deck.code.patterns.items():
        if name in MODES:
            raise CodeError(
                f"{deck.code.places[name]}: {name!r} is the name of one of the kit's patterns; "
                "give your own another name"
            )
        if isinstance(code, Pattern):
            modes[name] = replace(code, name=name)
        else:
            modes[name] = Pattern(name, code)
    return Registry("pattern", modes)


def patterns_of(deck: Deck) -> Mapping[str, Pattern]:
    """The patterns on which any message to this deck can be asked and compared: plans are none of them."""
    patterns = {name: pattern for name, pattern in modes_of(deck).items() if not pattern.is_plan}
    return Registry("pattern", patterns)


def pattern_of(choice: str | Pattern, deck: Deck) -> Pattern:
    """A pattern by its name in the kit or the deck, or one given in Python as it is. Raises UnknownId."""
    if isinstance(choice, str):
        return modes_of(deck)[choice]
    return choice
