"""Reports which card's description loses which questions to which other card, from labelled cases and predictions."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from kit.bench.case import Case, read_cases
from kit.bench.json_lines import read_objects
from kit.core.errors import DataError
from kit.core.value import Value
from kit.metrics.estimate import Estimate, share

NOBODY = "(nobody)"
"""Stands for no agent at all, also where turns in which none was called are a stratum."""
EXAMPLES = 3
"""Lost questions that a report quotes."""


class RoutedTurn(Value):
    """One labelled turn: whom it was for, and who was called."""

    query: str
    expected: tuple[str, ...]
    called: tuple[str, ...]
    previous: tuple[str, ...] = ()
    """Whom the turn before was for."""

    @classmethod
    def of(cls, case: Case, turn: int, called: Iterable[str]) -> "RoutedTurn":
        """A turn of a labelled case, and who was called."""
        ask = case.turns[turn]
        previous = case.turns[turn - 1].expected if turn else ()
        return cls(
            query=ask.user,
            expected=ask.expected,
            called=tuple(called),
            previous=previous,
        )

    @property
    def switch(self) -> bool:
        """The turn is for others than the one before."""
        return bool(self.previous) and set(self.previous) != set(self.expected)


class Confusion(Value):
    """Questions of one card that went to another; `(nobody)` stands for no card at all."""

    card: str
    to: str
    queries: tuple[str, ...]


class RoutingReport(Value):
    """Accuracy of each card, and what each loses to whom, the greatest loss first."""

    accuracy: dict[str, Estimate]
    confusions: tuple[Confusion, ...]

    def lines(self) -> list[str]:
        """The report in words."""
        lines: list[str] = []
        for card, right in self.accuracy.items():
            counts = f"{right.right:4}/{right.n:<4}"
            lines.append(f"{card:18} {counts} {right.value:6.1%}  at least {right.low:6.1%}")
        for loss in self.confusions:
            queries = list(dict.fromkeys(loss.queries))[:EXAMPLES]
            words = "; ".join(map(repr, queries))
            lines.append(f"{loss.card} loses {len(loss.queries)} to {loss.to}: {words}")
        return lines


def report(turns: Iterable[RoutedTurn]) -> RoutingReport:
    """A card's question is right when the card was called; a call nobody asked for is a question
    that `(nobody)` lost."""
    shares: dict[str, list[bool]] = defaultdict(list)
    losses: dict[tuple[str, str], list[str]] = defaultdict(list)
    for turn in turns:
        missing = set(turn.expected) - set(turn.called)
        extra = set(turn.called) - set(turn.expected)
        for card in turn.expected:
            shares[card].append(card not in missing)
        for card in missing or ([NOBODY] if extra else []):
            for taker in sorted(extra) or [NOBODY]:
                losses[card, taker].append(turn.query)
    confusions: list[Confusion] = []
    for (card, taker), queries in sorted(losses.items()):
        confusions.append(Confusion(card=card, to=taker, queries=tuple(queries)))
    # The greatest loss first; sorting keeps the order of those that are equal.
    confusions.sort(key=lambda confusion: -len(confusion.queries))
    accuracy = {card: share(sum(right), len(right)) for card, right in sorted(shares.items())}
    return RoutingReport(accuracy=accuracy, confusions=tuple(confusions))


def read_routed_turns(cases: Path, predictions: Path) -> list[RoutedTurn]:
    """Joins a labelled case file and the predictions of `kit route`, both JSONL; turns marked `skip` are left out.

    Raises DataError for a missing file, a broken line, or a turn without a prediction.
    """
    predicted: dict[tuple[str, int], tuple[str, ...]] = {}
    for turn, raw in read_objects(predictions, "prediction"):
        try:
            predicted[str(raw["id"]), int(raw["turn"])] = tuple(raw["called"])
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{turn}: needs id, turn, called") from error
    turns: list[RoutedTurn] = []
    for case in read_cases(cases):
        for turn in case.scored:
            if (case.id, turn) not in predicted:
                raise DataError(
                    f"turn {turn} of case {case.id!r} has no prediction; route the same file again"
                )
            turns.append(RoutedTurn.of(case, turn, predicted[case.id, turn]))
    return turns
