"""Replays a recorded turn under other status policies: what a person would have read, and when."""

from collections.abc import Iterable, Mapping, Sequence

from kit.compose.parts import StatusPolicy
from kit.core.bodies.call import AgentEnded, AgentStarted
from kit.core.bodies.speech import Status, Text
from kit.core.event import Event
from kit.core.status import OWN, UNKNOWN, Term
from kit.core.value import Value
from kit.runtime.speech.status_lines import Narrator, TimedLine

POLICIES: Mapping[str, StatusPolicy] = {
    "forward": StatusPolicy(),
    "interleave": StatusPolicy(order="interleave"),
    "window of 400 ms": StatusPolicy(default="batch"),
    "agent by agent": StatusPolicy(default="batch", batch_by="agent"),
    "one line a second": StatusPolicy(gap_ms=1000),
    "suppress": StatusPolicy(default="suppress"),
}
"""The policies to compare, by name."""


class Replay(Value):
    """One turn under one policy; times in seconds."""

    policy: str
    lines: int
    first_useful: float | None
    """From the turn's start to the first progress line or answer text; a preamble says nothing yet."""
    lines_a_second: float
    """While sub-agents were at work."""
    silence: dict[str, float]
    """Agent -> the longest stretch of its work, in seconds, without a line about it."""


def replay_lines(
    events: Iterable[Event], policy: StatusPolicy, phrases: Mapping[str, str]
) -> list[TimedLine]:
    """Returns the lines a policy makes of a recorded turn. Its statuses are taken as they are, the
    runtime's own included."""
    events = list(events)
    statuses: dict[str, Term] = {}
    for event in events:
        if isinstance(event.body, Status):
            statuses[event.body.status] = Term()
    # An unknown status is no line under any policy.
    statuses.pop(UNKNOWN, None)
    narrator = Narrator(policy, phrases, {**OWN, **statuses})
    lines: list[TimedLine] = []
    for event in events:
        # Lines that were due before this event come first.
        while (due := narrator.due) is not None and due <= event.at:
            lines += narrator.wake(due)
        match event.body:
            case AgentStarted(agent=agent):
                narrator.begin(agent)
            case Status(agent=agent, status=status):
                lines += narrator.hear(agent, status, event.at)
            case AgentEnded(agent=agent):
                lines += narrator.end(agent, event.at)
            case _:
                pass
    return lines


def replay(
    events: Sequence[Event], policy: StatusPolicy, phrases: Mapping[str, str], name: str = ""
) -> Replay:
    """Measures one turn under one policy."""
    lines = replay_lines(events, policy, phrases)
    useful = [line.at for line in lines]
    starts: dict[str, float] = {}
    ends: dict[str, float] = {}
    for event in events:
        match event.body:
            case Text(channel="answer"):
                useful.append(event.at)
            case AgentStarted(agent=agent):
                starts.setdefault(agent, event.at)
            case AgentEnded(agent=agent):
                ends[agent] = event.at
            case _:
                pass
    work = max(ends.values(), default=0.0) - min(starts.values(), default=0.0)
    silence: dict[str, float] = {}
    for agent, start in starts.items():
        silence[agent] = 0.0
        last = start
        for line in lines:
            if agent in line.agents:
                silence[agent] = max(silence[agent], line.at - last)
                last = line.at
        silence[agent] = max(silence[agent], ends.get(agent, start) - last)
    return Replay(
        policy=name,
        lines=len(lines),
        first_useful=min(useful, default=None),
        lines_a_second=len(lines) / work if work else 0.0,
        silence=silence,
    )


def compare(
    events: Sequence[Event],
    phrases: Mapping[str, str],
    policies: Mapping[str, StatusPolicy] = POLICIES,
) -> list[Replay]:
    """Replays one turn under every policy; returns a row for each."""
    return [replay(events, policy, phrases, name) for name, policy in policies.items()]
