"""What whole systems told of themselves in a run, and what they did not: a line of the report for each."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kit.core.display.count import many

PROJECTED = 5
"""Cases on every way after which a run of whole systems says what all of it will take."""
Row = Mapping[str, Any]


@dataclass
class _Answers:
    """The answers of one system, counted."""

    answers: int = 0
    unrouted: int = 0
    without_tokens: int = 0
    without_cost: int = 0
    dollars: float = 0.0
    failed: list[str] = field(default_factory=list[str])

    def add(self, row: Row) -> None:
        self.answers += 1
        self.unrouted += not row.get("routed", True)
        self.without_tokens += row["input_tokens"] is None
        self.without_cost += row["cost"] is None
        self.dollars += row["cost"] or 0.0
        if "error" in row:
            self.failed.append(row["error"])

    @property
    def words(self) -> str:
        if not self.answers:
            return "nothing was scored"
        parts = [many(self.answers, "turn")]
        parts.append(self._silence(self.unrouted, "whom it asked", "no score of routing there"))
        parts.append(self._silence(self.without_tokens, "what it read and wrote", "no tokens"))
        if self.without_cost < self.answers:
            parts.append(f"${self.dollars:,.4f} as far as it is known")
        parts.append(self._silence(self.without_cost, "what it cost", "no dollars"))
        if self.failed:
            share = f"{len(self.failed):,} of {many(self.answers, 'turn')} without an answer"
            parts.append(f"{share}, scored as it stands, such as {self.failed[0]}")
        return "; ".join(filter(None, parts))

    def _silence(self, count: int, subject: str, effect: str) -> str:
        if not count:
            return ""
        if count == self.answers:
            return f"it does not say {subject} ({effect})"
        return f"in {count:,} of them it does not say {subject} ({effect})"


def disclosures(systems: Collection[str], rows: Iterable[Row]) -> list[str]:
    """A line for each system."""
    answers_of = {name: _Answers() for name in systems}
    for row in rows:
        if row["model"] in answers_of:
            answers_of[row["model"]].add(row)
    return [f"{name}: {counts.words}" for name, counts in answers_of.items()]


def project(count: int, total: int, dollars: float | None, seconds: float) -> str:
    """What a whole run takes, in a sentence, judged by its first cells."""
    if dollars is None:
        cost = "no system has said what it spends"
    else:
        cost = (
            f"${dollars:,.4f} are spent, which makes about ${dollars * total / count:,.2f} for all"
        )
    minutes = seconds * (total - count) / count / 60
    return (
        f"After {count:,} of {many(total, 'cell')}: {cost}; about {minutes:,.1f} minutes are left."
    )
