"""Drift: how stored turns were routed, by their labels, against how the evaluation said they would be."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from kit.bench.routing_report import NOBODY, RoutedTurn, read_routed_turns
from kit.bench.scoring.labelling_sheet import Item, read_sheet
from kit.bench.statistics.difference import Difference, holm, holm_levels, newcombe
from kit.bench.statistics.distributions import fisher_p
from kit.core.display.command import command
from kit.core.errors import DataError
from kit.core.value import Value
from kit.metrics.estimate import LEVEL, Estimate, normal_reach, share


class Drift(Value):
    """The drift of one sub-agent. Both shares are of the turns that called it: those that should have."""

    vertical: str
    evaluated: Estimate
    stored: Estimate
    open: int = 0
    """Sampled turns that nobody labelled."""
    difference: Difference | None = None
    """Stored less evaluated, as wide as the number of sub-agents asks; None where one side has no turns."""
    p: float = 1.0
    """Fisher's exact test, corrected by Holm for all sub-agents."""

    @property
    def significant(self) -> bool:
        """Whether it would be odd even of the oddest of so many sub-agents, had none of them drifted."""
        if self.difference is None:
            return False
        return self.p < 1 - LEVEL and self.difference.excludes(0.0)

    def line(self) -> str:
        """Returns the row in words, for a terminal."""
        text = (
            f"{self.vertical:18} evaluation {_share(self.evaluated)}  stored {_share(self.stored)}"
        )
        difference = self.difference
        if difference is None:
            text += "  nothing to compare"
        else:
            verdict = "DRIFT" if self.significant else "no drift shown"
            ends = f"[{difference.low:+.1%}, {difference.high:+.1%}]"
            text += f"  {difference.value:+7.1%} {ends} {verdict}"
        if self.open:
            text += f"; {self.open} unlabelled"
        return text


def measure_drift(sheet: Sequence[Item], evaluated: Iterable[RoutedTurn]) -> tuple[Drift, ...]:
    """Compares each stratum of a labelled sheet with the same sub-agent's evaluation, in order of name.

    A turn counts for the strata it was drawn for alone: those are random samples, the rest of the sheet is not.
    """
    evaluation: dict[str, list[bool]] = defaultdict(list)
    # Whoever called nobody is a stratum of its own: an agent may have been needed.
    for turn in evaluated:
        for name in turn.called or (NOBODY,):
            evaluation[name].append(_right(name, turn.expected))
    now: dict[str, list[bool]] = defaultdict(list)
    unlabelled: Counter[str] = Counter()
    for item in sheet:
        for name in item.strata:
            if item.label.agents is None:
                unlabelled[name] += 1
            else:
                now[name].append(_right(name, item.label.agents))
    rows: list[Drift] = []
    for name in sorted({*evaluation, *now, *unlabelled}):
        rows.append(_compare(name, evaluation[name], now[name], unlabelled[name]))
    return _corrected(rows)


def _corrected(rows: Sequence[Drift]) -> tuple[Drift, ...]:
    """The same rows, their p-values and intervals corrected for the number of comparisons."""
    chances: dict[str, float] = {}
    for row in rows:
        if row.difference is not None:
            chances[row.vertical] = row.p
    adjusted = holm(chances)
    levels = holm_levels(chances)
    corrected: list[Drift] = []
    for row in rows:
        if row.difference is not None:
            wider = row.difference.reaching(normal_reach(levels[row.vertical]))
            row = row.replace(p=adjusted[row.vertical], difference=wider.of_scores)
        corrected.append(row)
    return tuple(corrected)


def print_drift(sheet: Path, cases: Path | None, predictions: Path | None) -> int:
    """Prints a line for each sub-agent; returns 1 when one has drifted, which chance alone brings
    about in at most one run of twenty. Raises DataError for a file that is missing or broken."""
    if cases is None or predictions is None:
        raise DataError(
            f"a comparison needs both: the evaluation's --cases and the --predictions that "
            f"`{command('route')}` made for them"
        )
    rows = measure_drift(read_sheet(sheet), read_routed_turns(cases, predictions))
    has_drifted = False
    for row in rows:
        print(row.line())
        has_drifted = has_drifted or row.significant
    return int(has_drifted)


def _right(vertical: str, expected: Sequence[str]) -> bool:
    """Returns whether a call should have been made; calling nobody is right when nobody should be called."""
    if vertical == NOBODY:
        return not expected
    return vertical in expected


def _compare(
    vertical: str, evaluation: Sequence[bool], now: Sequence[bool], unlabelled: int
) -> Drift:
    drift = Drift(
        vertical=vertical,
        evaluated=share(sum(evaluation), len(evaluation)),
        stored=share(sum(now), len(now)),
        open=unlabelled,
    )
    if not evaluation or not now:
        return drift
    first = (sum(evaluation), len(evaluation))
    second = (sum(now), len(now))
    return drift.replace(difference=newcombe(first, second), p=fisher_p(first, second))


def _share(share: Estimate) -> str:
    if share.n:
        return f"{share.right:4}/{share.n:<4} {share.value:6.1%}"
    return f"{'-':>9} {'-':>6}"
