"""Which faults hold here and now: set around the start of a turn, inherited by every task it starts.

A fault may be added while the turn runs: then it holds from that moment on.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from kit.core.fault import CATALOGUE, Fault, Target
from kit.core.value import new_list, new_set


@dataclass(frozen=True, slots=True)
class Injection:
    """The faults of one turn, those of them that happen once and have happened, and those that have struck at all."""

    faults: list[Fault]
    one_shots: set[Fault] = field(default_factory=new_set)
    landed: set[Fault] = field(default_factory=new_set)
    breakers: list[tuple[str, Callable[[Fault], bool]]] = field(default_factory=new_list)
    """Of each agent at work its id, and what breaks off the call that it is in; False where the
    fault has to wait for its next one."""

    def add(self, fault: Fault) -> None:
        """Makes a fault hold from now on, also in the call in which it finds its agent."""
        self.faults.append(fault)
        for agent, break_off in list(self.breakers):
            if agent == fault.where and break_off(fault):
                self.landed.add(fault)


_injection: ContextVar[Injection | None] = ContextVar("injection", default=None)


@contextmanager
def inject_faults(faults: Sequence[Fault]) -> Generator[Injection]:
    """Tasks started inside have these faults, their children too; nothing else has, nor does a turn
    inside another inherit its faults. Yields what will be known of them, and takes more of them."""
    injection = Injection(list(faults))
    token = _injection.set(injection)
    try:
        yield injection
    finally:
        _injection.reset(token)


def active_faults(where: str, *targets: Target) -> tuple[Fault, ...]:
    """Faults that hold here and now for an agent, of these targets. Whoever asks makes them happen;
    of a model's faults the model says itself which ones do (`land`)."""
    injection = _injection.get()
    if injection is None:
        return ()
    faults: list[Fault] = []
    for fault in injection.faults:
        if fault.where == where and CATALOGUE[fault.kind].target in targets:
            faults.append(fault)
    # A model is asked several times, and a fault may be about one of its calls alone.
    if "model" not in targets:
        injection.landed.update(faults)
    return tuple(faults)


def land(fault: Fault) -> None:
    """Notes that a fault has happened in this turn."""
    injection = _injection.get()
    if injection is not None:
        injection.landed.add(fault)


def current_injection() -> Injection | None:
    """The faults of this turn; None where nothing can be made to fail."""
    return _injection.get()


def planned_faults() -> tuple[Fault, ...]:
    """All faults that hold here and now, wherever they strike."""
    injection = _injection.get()
    if injection is not None:
        return tuple(injection.faults)
    return ()


def once(fault: Fault) -> bool:
    """True the first time it is asked about a fault in a turn."""
    injection = _injection.get()
    if injection is None or fault in injection.one_shots:
        return False
    injection.one_shots.add(fault)
    return True
