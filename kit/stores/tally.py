"""What stored turns add up to: counts and samples that metrics are made from. Tallies of different
turns merge into one."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import orjson

from kit.core.bodies.speech import Acknowledgement
from kit.core.display.turn_parts import ending_of, owning_up
from kit.core.record import AgentMeasure, PurposeUsage, TurnRecord

Key = tuple[str, ...]
"""The name of a figure, and of what it is: an agent, a purpose, a pattern and whether anybody was asked."""
ASKED = "asked"
NOBODY = "nobody"
ALONE = "alone"
"""A turn whose orchestrator called tools of its own and no sub-agent, as that of the monolith does."""
TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "model_calls")
"""Of a usage, what is counted for each purpose."""


class Mismatch(NamedTuple):
    """A reply for another principal."""

    at: float
    """Seconds since the epoch."""
    turn_id: str
    user_id: str


@dataclass(slots=True)
class Tally:
    """Counts and samples over turns. Samples are in seconds."""

    counts: Counter[Key] = field(default_factory=Counter[Key])
    dollars: defaultdict[Key, float] = field(default_factory=lambda: defaultdict[Key, float](float))
    # As lists, those of 100,000 turns would take 25 MB more.
    samples: "defaultdict[Key, array[float]]" = field(
        default_factory=lambda: defaultdict(lambda: array("d"))
    )
    silences: defaultdict[str, float] = field(
        default_factory=lambda: defaultdict[str, float](float)
    )
    """Agent -> its longest stretch without a status."""
    users: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Tenant and user of whoever had a turn."""
    mismatches: list[Mismatch] = field(default_factory=list[Mismatch])

    def add(self, turn: TurnRecord) -> None:
        """Adds a turn; of one that has not ended only the mismatches count."""
        measures = turn.measures
        for seconds in measures.mismatches:
            self.mismatches.append(Mismatch(turn.started_at + seconds, turn.id, turn.user_id))
        if turn.seconds is None:
            return
        counts = self.counts
        self.users.add((turn.tenant_id, turn.user_id))
        counts["turns",] += 1
        counts["intents", "3+" if turn.intent_count > 2 else str(turn.intent_count)] += 1
        counts["fan_out", str(len(measures.agents))] += 1
        counts["model", turn.model] += 1
        counts["over_cap",] += turn.cap_behavior == "over"
        counts["ending", ending_of(turn.status, measures.parts)] += 1
        if measures.agents:
            path = turn.pattern, ASKED
        elif turn.tool_calls:
            path = turn.pattern, ALONE
        else:
            path = turn.pattern, NOBODY
        counts["path", *path] += 1
        self._sample(turn.seconds, "turn", *path)
        self._sample(turn.ttft, "first_text", *path)
        self._sample(measures.routing, "routing", *path)
        self._sample(measures.overhead, "overhead")
        counts["envelopes",] += measures.envelopes
        counts["version_mismatches",] += measures.version_mismatches
        counts["model_faults",] += measures.model_faults
        counts["compacted",] += measures.compactions > 0
        acknowledged = cast("Acknowledgement | None", measures.acknowledged)
        how = owning_up(turn.status, measures.parts, acknowledged)
        if how is not None and how != "nothing_owed":
            counts["acknowledged", how] += 1
        # A turn that its user stopped owes no answer.
        if turn.status != "cancelled":
            counts["broken",] += measures.broken
            is_lost_whole = turn.status == "failed" and not measures.parts.total
            if is_lost_whole or how not in (None, "nothing_owed", "unsaid"):
                counts["broken_owned_up",] += measures.broken
        counts["broken_leaked",] += measures.leaked
        if measures.repeats is not None:
            counts["repeats", str(measures.repeats)] += 1
        self._add_agents(measures.agents)
        self._add_spending(measures.spent)

    def _sample(self, seconds: float | None, *key: str) -> None:
        if seconds is not None:
            self.samples[key].append(seconds)

    def _add_agents(self, agents: Sequence[AgentMeasure]) -> None:
        counts = self.counts
        runs = 0
        whole = 0
        for measure in agents:
            agent = measure.agent
            self._sample(measure.seconds, "agent", agent)
            self._sample(measure.first_status, "first_status", agent)
            self.silences[agent] = max(self.silences[agent], measure.longest_silence)
            counts["data_faults", agent] += measure.data_faults
            counts["partial", agent] += measure.partial
            counts["statuses", agent] += measure.statuses
            counts["unknown_statuses", agent] += measure.unknown_statuses
            if measure.is_stopped:
                continue
            if not measure.ok:
                counts["failures", agent] += 1
                counts["axis", str(measure.axis)] += 1
                if measure.cause:
                    counts["cause", measure.cause] += 1
            if not measure.alone:
                runs += 1
                whole += measure.ok and not measure.partial
        if runs > 1:
            counts["fan_out_whole",] += whole
            counts["fan_out_calls",] += runs
            counts["fan_outs",] += 1
            counts["fan_outs_partial",] += 0 < whole < runs

    def _add_spending(self, spent: Iterable[PurposeUsage]) -> None:
        for item in spent:
            purpose = item.purpose
            self.counts["purpose", purpose] += 1
            for name in (*TOKENS, "estimated", "untold_costs"):
                self.counts[name, purpose] += getattr(item.usage, name)
            if item.usage.cost is not None:
                self.dollars["cost", purpose] += item.usage.cost

    def merge(self, tally: "Tally") -> None:
        """Adds all turns of another tally."""
        self.counts.update(tally.counts)
        self.users |= tally.users
        self.mismatches += tally.mismatches
        for key, dollars in tally.dollars.items():
            self.dollars[key] += dollars
        for key, values in tally.samples.items():
            self.samples[key] += values
        for agent, seconds in tally.silences.items():
            self.silences[agent] = max(self.silences[agent], seconds)

    def of(self, name: str) -> dict[str, int]:
        """The counts of one name, by what they are of."""
        mapping: dict[str, int] = {}
        for key, count in self.counts.items():
            if key[0] == name and len(key) > 1:
                mapping[key[1]] = count
        return mapping

    def dump(self) -> str:
        """Returns the tally as JSON, its samples in microseconds."""
        samples = [
            (key, [round(value, 6) for value in values]) for key, values in self.samples.items()
        ]
        figures = [
            [*self.counts.items()],
            [*self.dollars.items()],
            samples,
            [*self.silences.items()],
        ]
        return orjson.dumps([*figures, sorted(self.users), [*map(tuple, self.mismatches)]]).decode()

    @classmethod
    def load(cls, text: str) -> "Tally":
        """Reads what `dump` wrote."""
        counts, dollars, samples, silences, users, mismatches = orjson.loads(text)
        tally = cls(
            users=set(map(tuple, users)),
            mismatches=[Mismatch(*mismatch) for mismatch in mismatches],
        )
        tally.silences.update(silences)
        for key, values in samples:
            tally.samples[tuple(key)].extend(values)
        for totals, figures in ((tally.counts, counts), (tally.dollars, dollars)):
            totals.update({tuple(key): value for key, value in figures})
        return tally


def tally_of(turns: Iterable[TurnRecord]) -> Tally:
    """Adds up turns."""
    tally = Tally()
    for turn in turns:
        tally.add(turn)
    return tally
