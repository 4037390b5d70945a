"""The counter of what was broken on purpose: how many parts, and how many answers said so."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kit.core.bodies.call import ModelEnded, ModelStarted
from kit.core.bodies.speech import Component, StatusLine, Text, TextReplaced
from kit.core.bodies.turn import Completed, Routing
from kit.core.display.count import many
from kit.core.display.made_to_fail import wanted_faults
from kit.core.display.turn_parts import is_part, turn_parts
from kit.core.event import Event
from kit.core.fault import CANARY, CANARY_NUMBER, RAW, STRANGE_STATUS, Fault, Kind
from kit.core.value import Value

if TYPE_CHECKING:
    from kit.stores.turn_store import TurnStore

MARKS = (RAW, CANARY, STRANGE_STATUS, str(CANARY_NUMBER), f"{CANARY_NUMBER:,}")
"""What faults put where nobody may read it: raw reasons, and all that a stranger's reply holds."""


class Breakages(Value):
    """What became of the parts that were broken on purpose, over many turns."""

    broken: int = 0
    """Parts of messages that were lost, or lack data, because something was made to fail."""
    owned_up: int = 0
    """Of these, the ones whose answer says what it lacks, by the one function that says so (`owning_up`).
    A message that was lost whole has a fixed sentence for an answer."""
    leaked: int = 0
    """Turns with a fault in which a text that a person reads holds a raw reason or a stranger's data."""

    def __str__(self) -> str:
        return (
            f"{many(self.broken, 'part')} broken on purpose, {self.owned_up:,} said to be missing, "
            f"{many(self.leaked, 'answer')} with a raw error or somebody else's data"
        )


def breakages(store: "TurnStore", tenant_id: str | None = None) -> Breakages:
    """Counts the faults that landed in the stored turns of a tenant, or of all, and cost a part.

    A fault counts whether its turn began with it or it came in the middle. One that changed nothing
    does not count, nor does a turn that its user stopped: that one owes no answer.
    """
    counts = store.tally(tenant_id).counts
    return Breakages(
        broken=counts["broken",],
        owned_up=counts["broken_owned_up",],
        leaked=counts["broken_leaked",],
    )


def broken_parts(events: Sequence[Event]) -> int:
    """Returns how many parts of a turn were lost, or lack data, because something was made to fail.

    What the orchestrator loses is the call that it forgets, or the whole message, which counts as one part.
    """
    agents: set[str] = set()
    services: set[str] = set()
    lead_kinds: set[Kind] = set()
    lead = _lead(events)
    for wanted in wanted_faults(events):
        if wanted.has_cost:
            agents.add(wanted.agent)
        if not wanted.agent:
            continue
        fault = Fault.from_text(wanted.fault)
        if wanted.agent == lead:
            lead_kinds.add(fault.kind)
        # In a monolith nobody of that name runs, and its services are asked all the same.
        elif not (wanted.was_asked or fault.needs_agent):
            services.add(wanted.agent)
    count = 0
    for event in events:
        if not isinstance(event.body, Routing):
            continue
        decision = event.body.decision
        for outcome in decision.outcomes:
            is_lacking = outcome.result != "success" and is_part(outcome)
            is_of_service = outcome.agent in services and outcome.result in (
                "data_error",
                "partial",
            )
            count += is_lacking and (outcome.agent in agents or is_of_service)
        if "drops_call" in lead_kinds:
            count += min(1, decision.left_out.count)
    if not count and lead_kinds and _is_lost_in_silence(events):
        return 1
    return count


def _lead(events: Sequence[Event]) -> str:
    """Returns who was called first: the orchestrator, of every pattern that has one."""
    for event in events:
        if isinstance(event.body, ModelStarted):
            return event.body.agent
    return ""


def _is_lost_in_silence(events: Sequence[Event]) -> bool:
    """Whether a turn failed without any part, and no model had said a word.

    Its answer is a fixed sentence then, or a refusal.
    """
    for event in events:
        body = event.body
        if isinstance(body, ModelEnded) and body.text:
            return False
        if isinstance(body, Routing) and turn_parts(body.decision).total:
            return False
    return any(
        isinstance(event.body, Completed) and event.body.status == "failed" for event in events
    )


def leaks(events: Sequence[Event]) -> bool:
    """Whether a text of the turn that a person reads holds what faults hide from people."""
    streamed: list[str] = []
    texts: list[str] = []
    for event in events:
        match event.body:
            case Text(text=text):
                # A mark may come in several pieces.
                streamed.append(text)
            case TextReplaced(text=text) | StatusLine(text=text) | Completed(text=text):
                texts.append(text)
            case Component(payload=payload):
                texts.append(str(payload))
            case _:
                pass
    read = "\n".join(["".join(streamed), *texts])
    return any(mark in read for mark in MARKS)
