"""What model calls were for and what they cost: the measures of the group Spending."""

from collections.abc import Callable, Mapping

from kit.metrics.sample import Figures, Number, Sample

EXTRA_CALLS = ("compose", "prior_context", "summary")
"""Purposes of calls that are made beside routing and answering, only when they are needed."""


def purposes(sample: Sample) -> dict[str, int]:
    """Returns what model calls were for -> the turns with such a call."""
    return dict(sorted(sample.tally.of("purpose").items()))


def by_purpose(*counts: str) -> Callable[[Sample], dict[str, Number]]:
    """Measures a sum over the model calls of each purpose."""

    def measure(sample: Sample) -> dict[str, Number]:
        figures: dict[str, Number] = {}
        for purpose in purposes(sample):
            figures[purpose] = sum([sample.tally.counts[name, purpose] for name in counts])
        return figures

    return measure


def a_turn(measure: Callable[[Sample], Mapping[str, Number]]) -> Callable[[Sample], Figures]:
    """Divides what is measured by the number of turns."""

    def divided(sample: Sample) -> Figures:
        turns = sample.tally.counts["turns",]
        return {purpose: divide(value, turns) for purpose, value in measure(sample).items()}

    return divided


def divide(value: Number, count: int) -> Number:
    """Divides a sum; None where there is none, or nothing to divide it by."""
    if value is None or not count:
        return None
    return value / count


def cost_by_purpose(sample: Sample) -> dict[str, Number]:
    """Returns dollars by purpose; None where no price is known."""
    return {purpose: sample.tally.dollars.get(("cost", purpose)) for purpose in purposes(sample)}


def not_told(sample: Sample) -> dict[str, Number]:
    """Returns how often what was spent is no bill, by why."""
    estimated = sum(sample.tally.of("estimated").values())
    untold = sum(sample.tally.of("untold_costs").values())
    return {"purposes of turns, estimated": estimated, "agents of other systems": untold}


def extra_cost(sample: Sample) -> dict[str, Number]:
    """Returns the dollars of all extra calls together; None where no price of them is known."""
    costs = cost_by_purpose(sample)
    total: Number = None
    for purpose in EXTRA_CALLS:
        cost = costs.get(purpose)
        if cost is not None:
            total = (total or 0.0) + cost
    return {" + ".join(EXTRA_CALLS): total}
