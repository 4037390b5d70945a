"""Replays a recorded turn under other status policies: what a person would have read, and when."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from kit.compose.parts import StatusPolicy
from kit.core.bodies.call import AgentEnded, AgentStarted
from kit.core.bodies.speech import Status, Text
from kit.core.context import OPERATOR
from kit.core.errors import DataError
from kit.core.event import Event
from kit.core.status import OWN, UNKNOWN, Term
from kit.core.value import Value
from kit.runtime.speech.status_lines import Narrator, TimedLine
from kit.stores.sqlite import SqliteStore

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


def table(rows: Sequence[Replay]) -> str:
    """Formats the comparison for a terminal: a row for each policy, the agent that was silent longest at its end."""
    lines = [
        f"{'policy':18} {'lines':>5} {'a second':>9} {'first useful':>13} {'longest silence':>16}"
    ]
    for row in rows:
        first = "-"
        if row.first_useful is not None:
            first = f"{row.first_useful:.2f} s"
        agent, longest = max(row.silence.items(), key=lambda pair: pair[1], default=("", 0.0))
        speed = f"{row.lines:5} {row.lines_a_second:9.2f} {first:>13}"
        lines.append(f"{row.policy:18} {speed} {longest:14.2f} s  {agent}")
    return "\n".join(lines)


def stored_turn(path: Path, turn_id: str | None = None) -> list[Event]:
    """Reads the events of a stored turn, by default the newest that asked anybody. Raises DataError
    when there is none."""
    if not path.is_file():
        raise DataError(
            f"{path} is no file: name the store whose turns are to be replayed, such as .kit/kit.db"
        )
    with closing(SqliteStore(path)) as store:
        if turn_id is None:
            turn_id = next((turn.id for turn in store.turns(limit=500) if turn.invoked), "")
        events = store.events(turn_id, OPERATOR)
    if not events:
        raise DataError(
            f"{path} holds no ended turn {turn_id or 'that asked anybody'}: ask something first, or name another turn"
        )
    return events


def print_comparison(path: Path, turn_id: str | None = None) -> int:
    """Prints the comparison of one stored turn; returns 0. Raises DataError when the store holds no such turn."""
    events = stored_turn(path, turn_id)
    print(f"turn {events[0].turn_id}: recorded statuses under {len(POLICIES)} policies")
    print(table(compare(events, {})))
    return 0
