"""What whole systems told of themselves in a run, and what they did not: a line of the report for each."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kit.core.display.count import many

PROJECTED = 5
"""Cases on every way after which a run of whole systems says what all of it will take."""
Row = Mapping[str, Any]


def disclosures(systems: Collection[str], rows: Iterable[Row]) -> list[str]:
    """A line for each system."""
    rows_of: dict[str, list[Row]] = {name: [] for name in systems}
    for row in rows:
        if row["model"] in rows_of:
            rows_of[row["model"]].append(row)
    return [f"{name}: {_words(answers)}" for name, answers in rows_of.items()]


def _words(answers: Sequence[Row]) -> str:
    if not answers:
        return "nothing was scored"
    turns = many(len(answers), "turn")
    parts = [turns]
    silences = {
        "whom it asked (no score of routing there)": sum(
            not row.get("routed", True) for row in answers
        ),
        "what it read and wrote (no tokens)": sum(row["input_tokens"] is None for row in answers),
        "what it cost (no dollars)": sum(row["cost"] is None for row in answers),
    }
    for subject, count in silences.items():
        if count == len(answers):
            parts.append(f"it does not say {subject}")
        elif count:
            parts.append(f"in {count:,} of them it does not say {subject}")
    costs = [row["cost"] for row in answers if row["cost"] is not None]
    if costs:
        parts.append(f"${sum(costs):,.4f} as far as it is known")
    errors = [row["error"] for row in answers if "error" in row]
    if errors:
        share = f"{len(errors):,} of {turns} without an answer"
        parts.append(f"{share}, scored as it stands, such as {errors[0]}")
    return "; ".join(parts)


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
