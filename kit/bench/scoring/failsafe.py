"""Says what became of a routing reply that lacked a call, or was asked for again without need."""

from collections.abc import Collection, Iterable
from typing import Literal

from kit.core.bodies.call import ModelEnded, ModelStarted
from kit.core.bodies.guard import GuardActed
from kit.core.event import Event
from kit.runtime.handle import Reply

Fate = Literal["whole", "caught", "retry failed", "no room", "unseen", "over-triggered"]
"""`whole`: nothing lacked, nothing was asked; `caught`: what lacked was added; `retry failed`:
asked again, and it still lacks; `no room`: it lacks and was counted, but the calls that were made
fill the cap already; `unseen`: it lacks and was not asked for, because it was not counted either
or the failsafe is off; `over-triggered`: asked again though nothing lacked."""


def fate(expected: Collection[str], sub_agents: Collection[str], reply: Reply) -> Fate | None:
    """What became of one turn's first routing reply; None where nobody was to be called, or no failsafe reads it.

    `expected` and `called` are card ids; `called` after all guards.
    """
    if not expected or not reply.routing.has_failsafe:
        return None
    first = _first(reply.events)
    if first is None:
        return None
    first_calls, asked_again = first
    if set(expected) <= first_calls:
        if asked_again:
            return "over-triggered"
        return "whole"
    if not asked_again:
        more_were_reported = reply.routing.reported_intents > len(first_calls)
        if more_were_reported and len(first_calls) >= reply.routing.cap:
            return "no room"
        return "unseen"
    if set(expected) <= set(sub_agents):
        return "caught"
    return "retry failed"


def _first(events: Iterable[Event]) -> tuple[set[str], bool] | None:
    """Whom the first deciding reply called, and whether the failsafe asked for more."""
    deciding: set[str] = set()
    first_calls: set[str] | None = None
    asked_again = False
    # What is decided in later rounds is no routing reply.
    for event in events:
        match event.body:
            case ModelStarted(purpose="decide") if first_calls is None:
                deciding.add(event.span_id)
            case ModelEnded(calls=calls) if first_calls is None and event.span_id in deciding:
                first_calls = {call.name.removeprefix("ask_") for call in calls}
            case GuardActed(guard="failsafe", action="asked_again"):
                asked_again = True
            case _:
                pass
    if first_calls is None:
        return None
    return (first_calls, asked_again)
