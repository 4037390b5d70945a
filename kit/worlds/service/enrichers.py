"""What a context service serves: its enrichers by (domain type, enricher id), the data they read, and whom it knows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kit.core.context import Principal
from kit.worlds.service.parameters import Parameters

VERSION = "1.2.0"
"""Semantic version of every payload served here."""


@dataclass(frozen=True, slots=True)
class Enricher:
    """How one kind of data is looked up."""

    serve: Callable[[Any, Principal, Parameters], dict[str, Any]]
    """Given the world's data, the principal and the parameters: returns the payload."""
    seconds: float
    """How long it takes at latency 1."""
    personal: bool = True
    """Whether it answers only for a user the world knows."""


Enrichers = Mapping[tuple[str, str], Enricher]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The enrichers of one world over its data."""

    data: Any
    enrichers: Enrichers
    knows: Callable[[Principal, bool], bool]
    """Whether a principal has an account; with True the user must be known, with False the tenant is enough."""
