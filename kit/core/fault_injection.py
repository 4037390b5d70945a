"""Which faults hold here and now: set around the start of a turn, inherited by every task it starts."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from kit.core.fault import CATALOGUE, Fault, Place


@dataclass(frozen=True, slots=True)
class Injection:
    """The faults of one turn, and those of them that happen once and have happened."""

    faults: tuple[Fault, ...]
    one_shots: set[Fault] = field(default_factory=set[Fault])


_injection: ContextVar[Injection | None] = ContextVar("injection", default=None)


@contextmanager
def inject_faults(faults: Sequence[Fault]) -> Generator[None]:
    """Tasks started inside have these faults, their children too; nothing else has."""
    token = _injection.set(Injection(tuple(faults)) if faults else None)
    try:
        yield
    finally:
        _injection.reset(token)


def active_faults(where: str, *places: Place) -> tuple[Fault, ...]:
    """Faults that hold here and now for an agent, at these places."""
    injection = _injection.get()
    if injection is None:
        return ()
    return tuple(f for f in injection.faults if f.where == where and CATALOGUE[f.kind].place in places)


def planned_faults() -> tuple[Fault, ...]:
    """All faults that hold here and now, wherever they strike."""
    injection = _injection.get()
    return injection.faults if injection is not None else ()


def once(fault: Fault) -> bool:
    """True the first time it is asked about a fault in a turn."""
    injection = _injection.get()
    if injection is None or fault in injection.one_shots:
        return False
    injection.one_shots.add(fault)
    return True
