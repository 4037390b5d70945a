"""Patterns: short functions over decide, fan_out and compose; all see the same cards, tools, budgets, events."""

from collections.abc import Mapping

from kit.patterns.agents_as_tools import mediated
from kit.patterns.direct_streaming import direct
from kit.runtime.turn import Pattern

PATTERNS: Mapping[str, Pattern] = {"mediated": mediated, "direct": direct}
"""Name -> pattern."""
