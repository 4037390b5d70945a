"""What stored turns add up to: counts and samples that metrics are made from. Tallies of different
turns merge into one."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from kit.core.display.turn_parts import TurnParts, TurnStatus, ending_of, owning_up
from kit.core.record import TurnRecord

Key = tuple[str, ...]
"""The name of a figure, and of what it is: an agent, a purpose, a pattern and whether anybody was asked."""
ASKED = "asked"
NOBODY = "nobody"
TOKENS = ("input_tokens", "output_tokens", "cached_tokens", "model_calls")
"""Of a usage, what is counted for each purpose."""
_COUNTED = ("data_faults", "partial", "statuses", "unknown_statuses")


class TurnRow(NamedTuple):
    """What a tally takes of a stored turn."""

    id: str
    tenant_id: str
    user_id: str
    pattern: str
    started_at: float
    seconds: float | None
    """None for a turn that has not ended: of such a one only the mismatches count."""
    ttft: float | None
    intent_count: int
    cap_behavior: str
    status: TurnStatus
    model: str
    measures: Mapping[str, Any]
    """The fields of `Measures`; one that is missing has its default."""


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

    def add(self, turn: TurnRow) -> None:
        """Adds a turn."""
        measures = turn.measures
        for seconds in measures.get("mismatches", ()):
            self.mismatches.append(Mismatch(turn.started_at + seconds, turn.id, turn.user_id))
        if turn.seconds is None:
            return
        counts = self.counts
        agents = measures.get("agents", ())
        self.users.add((turn.tenant_id, turn.user_id))
        counts["turns",] += 1
        counts["intents", "3+" if turn.intent_count > 2 else str(turn.intent_count)] += 1
        counts["fan_out", str(len(agents))] += 1
        counts["model", turn.model] += 1
        counts["over_cap",] += turn.cap_behavior == "over"
        parts = TurnParts.model_validate(measures.get("parts", {}))
        counts["ending", ending_of(turn.status, parts)] += 1
        path = turn.pattern, ASKED if agents else NOBODY
        counts["path", *path] += 1
        for name, value in (
            ("turn", turn.seconds),
            ("first_text", turn.ttft),
            ("routing", measures.get("routing")),
        ):
            if value is not None:
                self.samples[name, *path].append(value)
        if (overhead := measures.get("overhead")) is not None:
            self.samples["overhead",].append(overhead)
        for name in ("envelopes", "version_mismatches", "model_faults"):
            counts[name,] += measures.get(name, 0)
        counts["compacted",] += measures.get("compactions", 0) > 0
        how = owning_up(turn.status, parts, measures.get("acknowledged"))
        if how is not None and how != "nothing_owed":
            counts["acknowledged", how] += 1
        if (repeats := measures.get("repeats")) is not None:
            counts["repeats", str(bool(repeats))] += 1
        self._add_agents(agents)
        self._add_spending(measures.get("spent", ()))

    def _add_agents(self, agents: Iterable[Mapping[str, Any]]) -> None:
        counts = self.counts
        whole = list[bool]()
        for measure in agents:
            agent = measure["agent"]
            get = measure.get
            self.samples["agent", agent].append(measure["seconds"])
            if (first := get("first_status")) is not None:
                self.samples["first_status", agent].append(first)
            self.silences[agent] = max(self.silences[agent], get("longest_silence", 0.0))
            for name in _COUNTED:
                counts[name, agent] += get(name, 0)
            if not measure["ok"]:
                counts["failures", agent] += 1
                counts["axis", str(get("axis"))] += 1
                if cause := get("cause"):
                    counts["cause", cause] += 1
            whole.append(measure["ok"] and not get("partial"))
        if len(whole) > 1:
            counts["fan_out_whole",] += sum(whole)
            counts["fan_out_calls",] += len(whole)
            counts["fan_outs",] += 1
            counts["fan_outs_partial",] += any(whole) and not all(whole)

    def _add_spending(self, spent: Iterable[Mapping[str, Any]]) -> None:
        for item in spent:
            purpose = item["purpose"]
            usage = item["usage"]
            self.counts["purpose", purpose] += 1
            for name in (*TOKENS, "estimated"):
                self.counts[name, purpose] += usage.get(name, 0)
            if (cost := usage.get("cost")) is not None:
                self.dollars["cost", purpose] += cost

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
    """Adds up turns that are in memory."""
    tally = Tally()
    for turn in turns:
        *plain, _ = TurnRow._fields
        tally.add(
            TurnRow._make((*(getattr(turn, name) for name in plain), turn.measures.model_dump()))
        )
    return tally
