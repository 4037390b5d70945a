"""Results of a grid in words: which way is better, by how much, how sure that is, and what would settle it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from kit.bench.grid.comparison import LOWER, Comparison, Summary
from kit.bench.run_page.sentences import verdict_sentence, way_name
from kit.bench.statistics.verdict import (
    Verdict,
    amount,
    difference_words,
    figure_words,
    interval_words,
)
from kit.core.display.count import many

WORDS = {
    "exact": "messages routed exactly right",
    "mixed_exact": "mixed messages routed whole",
    "single_exact": "single requests routed right",
    "strict": "each called with its own part",
    "seconds": "seconds of a turn",
    "ttft": "seconds to the first words",
    "routing_seconds": "seconds to decide whom to ask",
    "input_tokens": "tokens read in a turn",
    "output_tokens": "tokens written in a turn",
    "model_calls": "model calls of a turn",
    "cost": "dollars of a turn",
    "hops": "calls to peers",
    "hop_bytes": "bytes to and from peers",
    "hop_ms": "milliseconds that calls to peers took beside the peers' work",
    "peer_seconds": "seconds that peers worked",
    "peer_cost": "dollars that peers spent",
}
"""Scorer or measure -> what it counts."""
_TELLING: Mapping[Verdict, str] = {
    "better": "better",
    "worse": "worse",
    "cannot tell": "cannot be told apart",
    "equivalent": "equivalent",
    "no verdict": "cannot be compared",
}
"""Verdict -> what so many ways are, those that say most first."""
NONE_LOST: Mapping[str, str] = MappingProxyType({})


class Line(NamedTuple):
    """A row of the table: one way by one measure."""

    way: str
    value: str
    interval: str
    difference: str
    """Beside the baseline; empty for the baseline itself."""
    verdict: str
    cases_needed: str
    """How many cases a difference worth knowing takes, or that none are needed."""


def words(measure: str) -> str:
    """Returns in words what a measure counts."""
    return WORDS.get(measure, measure.replace("_", " "))


def headline(
    comparisons: Sequence[Comparison],
    baseline: str,
    kinds: str,
    ways: Sequence[Summary] = (),
    lost: Mapping[str, str] = NONE_LOST,
) -> str:
    """Returns the verdict on one measure as plain text: how many ways came out how, and the sentence that says most.
    `comparisons`: every way against the baseline by that measure; `ways`: each by itself; `lost`: ways that nothing
    was scored of, and why."""
    sentences = [f"There is no verdict on {name} ({reason})." for name, reason in lost.items()]
    if comparisons:
        counts = Counter(comparison.verdict for comparison in comparisons)
        results = [f"{counts[key]} {name}" for key, name in _TELLING.items() if counts[key]]
        by = words(comparisons[0].scorer)
        sentences.append(f"By {by} ({kinds}), beside {baseline}: {', '.join(results)}.")
        # The best of those that say most.
        telling = min(comparisons, key=_rank)
        sentences.append(verdict_sentence(telling))
        if telling.verdict == "cannot tell":
            sentences.append(f"{telling.leaves_possible.capitalize()}.")
    elif len(ways) == 1 and not lost:
        (line,) = lines(ways, ())
        sentences.append(
            f"By {words(ways[0].scorer)}, {line.way} is the only way here ({kinds}): {line.value}, "
            f"95 % interval {line.interval}; there is nothing to compare it with."
        )
    elif not lost:
        sentences.append(
            f"There is nothing to compare with {baseline} here: choose another baseline, or a run with several ways."
        )
    return " ".join(sentences)


def _rank(comparison: Comparison) -> tuple[int, float]:
    gain = comparison.difference.value
    if comparison.scorer in LOWER:
        gain = -gain
    return list(_TELLING).index(comparison.verdict), -gain


def lines(
    ways: Sequence[Summary],
    comparisons: Sequence[Comparison],
    lost: Iterable[str] = (),
) -> list[Line]:
    """Returns every way by one measure with its interval, and its difference from the baseline where it is compared.

    Of the `lost` ways there is nothing but their names."""
    by_way = {way_name(comparison.way): comparison for comparison in comparisons}
    scored_lines = [_line(summary, by_way.get(way_name(summary.way))) for summary in ways]
    return scored_lines + [Line(name, "–", "–", "", "no verdict", "") for name in lost]


def _line(summary: Summary, comparison: Comparison | None) -> Line:
    measure = summary.scorer
    figure = figure_words(summary.estimate.value, measure)
    ends = interval_words(summary.estimate, measure)
    if summary.failed:
        figure += f" of the completed, {many(summary.failed, 'turn')} failed"
    if summary.bounds is not None:
        # A turn that failed is no sample: had all of them been wrong, or right, this is how far the figure could go.
        low, high = (figure_words(bound, measure) for bound in summary.bounds)
        figure += f": {low} of all, {low} to {high} had they been wrong or right"
    name = way_name(summary.way)
    if comparison is None:
        return Line(name, figure, ends, "", "baseline", "")
    difference = difference_words(comparison.difference, measure)
    return Line(name, figure, ends, difference, comparison.verdict, _cases(comparison))


def _cases(comparison: Comparison) -> str:
    if comparison.settled:
        return "settled"
    if comparison.cases is None or comparison.verdict == "no verdict":
        return ""
    return f"about {comparison.cases:,} for {amount(comparison.margin, comparison.scorer)}"
