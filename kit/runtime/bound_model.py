"""A model with its tools bound, and the voice of one agent: which of its models speaks now, and
what happens when that fails."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import Runnable

from kit.core.errors import STOP, KitError, describe_error
from kit.core.fault import InjectedFault
from kit.core.fault_injection import planned_faults
from kit.core.model import ModelSpec
from kit.core.outcome import ErrorClass
from kit.core.secret import without_secret_words
from kit.models.diagnosis import class_of, diagnose, gave_up
from kit.models.gate import Gate
from kit.runtime.budget import OverBudget
from kit.runtime.log import TurnLog

log = logging.getLogger("kit.model")
_KITS_PROVIDERS = ("offline", "simulated")
"""Providers whose models nobody can fail to reach."""


@dataclass(frozen=True, slots=True)
class BoundModel:
    """A model with its tools already bound, and what is known about it."""

    spec: ModelSpec
    runnable: Runnable[Any, Any]
    private: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Tool name -> arguments that are personal: redacted in the trace."""
    tools: Sequence[Mapping[str, Any]] = ()
    """The schemas that were bound, as a recording names them."""
    prefix: str = ""
    """What its agent's system messages begin with, which the trace does not repeat."""
    gate: Gate | None = None
    """What its calls wait at; None where nobody limits them."""
    fault_kinds: set[str] = field(default_factory=set[str])
    """How its calls have failed so far: each kind is logged once."""

    def fault_line(self, error: BaseException, turn_log: TurnLog, *, quiet: bool = False) -> str:
        """Returns what a trace says of a call that failed. Of a real model that is its diagnosis,
        without keys.

        The first of each kind is logged with the trace's id: without a handler Python writes that
        to stderr, so it is read in a terminal, behind the app and in a notebook. Users read none of
        it. A replay is `quiet`: nothing failed now.
        """
        if isinstance(error, OverBudget) or not self._is_lost(error):
            return describe_error(error)
        line = without_secret_words(diagnose(error, self.spec, self.runnable), turn_log.secrets)
        kind = f"{type(error).__name__} {getattr(error, 'status_code', '')}"
        if not quiet and kind not in self.fault_kinds:
            self.fault_kinds.add(kind)
            log.warning("%s (trace %s)", line, turn_log.turn_id)
        # what was cut off stays known as that
        if isinstance(error, Exception):
            return line
        return f"{STOP}: {line}"

    def error_class(self, error: BaseException) -> ErrorClass | None:
        """Returns what lost a call of a real model; None where the failure was wanted, or is no infrastructure's."""
        if not self._is_lost(error):
            return None
        if isinstance(error, OverBudget):
            kind = "budget"
        else:
            kind = class_of(error)
        if kind == "budget" and planned_faults():
            return None
        return kind

    def _is_lost(self, error: BaseException) -> bool:
        """Whether a call of a real model failed, and neither on purpose nor because whoever asked gave up."""
        if self.spec.provider in _KITS_PROVIDERS or isinstance(error, InjectedFault | KitError):
            return False
        return isinstance(error, Exception) or gave_up(error)


@dataclass(slots=True)
class Voice:
    """The model of one invocation, or of an orchestrator for one turn; `call_with_fallback` speaks with it.

    Once the fallback has taken over it stays; it gets no second chance of its own.
    """

    model: BoundModel
    fallback: BoundModel | None = None
    patience: float | None = None
    """Seconds the model has for one call while the fallback still stands behind it."""
    limit: float | None = None
    """Seconds that any one call may take, the fallback's too; None: as long as whoever asks has."""
    may_fall_back: bool = True
    """False once a foreign principal's data turned up: no other model is asked after that."""
    instead_of: str | None = None
    """Key of the model that failed before this one."""
