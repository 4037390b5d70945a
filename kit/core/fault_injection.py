"""Which faults hold here and now: set around the start of a turn, inherited by every task it starts."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from kit.core.fault import CATALOGUE, Fault, Place


@dataclass(frozen=True, slots=True)
class Injection:
    """The faults of one turn, those of them that happen once and have happened, and those that have struck at all."""

    faults: tuple[Fault, ...]
    one_shots: set[Fault] = field(default_factory=set[Fault])
    landed: set[Fault] = field(default_factory=set[Fault])


_injection: ContextVar[Injection | None] = ContextVar("injection", default=None)


@contextmanager
def inject_faults(faults: Sequence[Fault]) -> Generator[Injection]:
    """Tasks started inside have these faults, their children too; nothing else has. Yields what
    will be known of them."""
    injection = Injection(tuple(faults))
    token = _injection.set(injection if faults else None)
    try:
        yield injection
    finally:
        _injection.reset(token)


def active_faults(where: str, *places: Place) -> tuple[Fault, ...]:
    """Faults that hold here and now for an agent, at these places. Whoever asks makes them happen;
    of a model's faults the model says itself which ones do (`land`)."""
    injection = _injection.get()
    if injection is None:
        return ()
    faults = tuple(
        f for f in injection.faults if f.where == where and CATALOGUE[f.kind].place in places
    )
    if "model" not in places:
        injection.landed.update(faults)
    return faults


def land(fault: Fault) -> None:
    """Notes that a fault has happened in this turn."""
    injection = _injection.get()
    if injection is not None:
        injection.landed.add(fault)


def planned_faults() -> tuple[Fault, ...]:
    """All faults that hold here and now, wherever they strike."""
    injection = _injection.get()
    if injection is not None:
        return injection.faults
    return ()


def once(fault: Fault) -> bool:
    """True the first time it is asked about a fault in a turn."""
    injection = _injection.get()
    if injection is None or fault in injection.one_shots:
        return False
    injection.one_shots.add(fault)
    return True
