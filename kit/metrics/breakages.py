"""The counter of what was broken on purpose: "41 broken, 41 owned up to, 0 leaked"."""

from collections.abc import Sequence

from kit.core.bodies.speech import Component, StatusLine, Text, TextReplaced
from kit.core.bodies.turn import Completed, Routing
from kit.core.display.made_to_fail import wanted_faults
from kit.core.display.turn_parts import is_part
from kit.core.event import Event
from kit.core.fault import CANARY, CANARY_NUMBER, RAW, STRANGE_STATUS
from kit.core.value import Value
from kit.stores.protocol import Store

MARKS = (RAW, CANARY, STRANGE_STATUS, str(CANARY_NUMBER), f"{CANARY_NUMBER:,}")
"""What faults put where nobody may read it: raw reasons, and all that a stranger's reply holds."""


class Breakages(Value):
    """What became of the parts that were broken on purpose, over many turns."""

    broken: int = 0
    """Parts of messages that were lost, or lack data, because their sub-agent was made to fail."""
    owned_up: int = 0
    """Of these, the ones whose answer says what it lacks, by the one function that says so (`owning_up`)."""
    leaked: int = 0
    """Turns with a fault in which a text that a person reads holds a raw reason or a stranger's data."""

    def __str__(self) -> str:
        return f"{self.broken:,} broken, {self.owned_up:,} owned up to, {self.leaked:,} leaked"


def breakages(store: Store, tenant_id: str | None = None) -> Breakages:
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
    """Returns how many parts of a turn were lost, or lack data, because their agent was made to fail."""
    agents = {wanted.agent for wanted in wanted_faults(events) if wanted.has_cost}
    count = 0
    for event in events:
        if not isinstance(event.body, Routing):
            continue
        for outcome in event.body.decision.outcomes:
            is_lacking = outcome.result != "success" and is_part(outcome)
            count += is_lacking and outcome.agent in agents
    return count


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
