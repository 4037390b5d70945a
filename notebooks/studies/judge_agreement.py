"""How far a judge can be trusted: its verdicts set against labels given by hand, with Cohen's kappa.

Its interval holds close to 1, and where one of the two says yes more often than the other.
"""

from collections import Counter
from collections.abc import Sequence
from math import exp
from typing import Any, Literal

import numpy as np
from pydantic import TypeAdapter

from kit.bench.case import Ask, Case
from kit.bench.scoring.judge import Judge
from kit.bench.scoring.observation import Observation
from kit.bench.statistics.clusters import Floats
from kit.bench.statistics.distributions import least_where
from kit.compose.yaml_loader import load_yaml
from kit.core.errors import DataError
from kit.core.value import Value
from kit.home import HOME
from kit.metrics.estimate import Estimate, normal_reach

SOURCE = HOME / "data" / "source" / "cases"
Quality = Literal["good", "lawful"]
"""The two labels of data/source/cases/judged.yaml."""


class LabelledReply(Value):
    """A reply of data/source/cases/judged.yaml, with its labels."""

    user: str
    answers: dict[str, str] = {}
    failed: tuple[str, ...] = ()
    reply: str
    good: bool
    lawful: bool


class Kappa(Estimate):
    """Agreement beyond what chance would bring (Cohen 1960), with an interval by profile
    likelihood."""

    table: tuple[tuple[int, int], tuple[int, int]]
    """Labelled no and yes, by judged no and yes."""
    undecided: int = 0
    """Replies the judge gave no verdict on; they are in no cell."""

    @property
    def agreed(self) -> int:
        return self.table[0][0] + self.table[1][1]

    @property
    def is_constant(self) -> bool:
        """Whether the judge says the same of all replies."""
        (both_no, judged_yes), (judged_no, both_yes) = self.table
        return both_no + judged_no == 0 or judged_yes + both_yes == 0

    @property
    def best_constant(self) -> int:
        """As many verdicts as a judge would have right that says of every reply what most labels say."""
        labelled_no = sum(self.table[0])
        return max(labelled_no, self.n - labelled_no)

    def __str__(self) -> str:
        note = ""
        if self.undecided:
            note = f", {self.undecided} undecided"
        verdicts = f"{self.agreed} of {self.n} verdicts as labelled"
        if self.is_constant:
            return f"kappa 0: {verdicts}, as a constant{note}"
        return f"kappa {self:.3f}: {verdicts}, a constant has {self.best_constant}{note}"


def agreement(labels: Sequence[bool], verdicts: Sequence[bool | None]) -> Kappa:
    """Kappa of verdicts against labels; 0 for a judge that says the same of all. Raises DataError
    where the labels never vary, or nothing was decided: there is nothing to agree with then."""
    # A judge may decline: such a reply is in no cell of the table.
    counts: Counter[tuple[bool, bool]] = Counter()
    for label, verdict in zip(labels, verdicts, strict=True):
        if verdict is not None:
            counts[label, verdict] += 1
    table = ((counts[False, False], counts[False, True]), (counts[True, False], counts[True, True]))
    if not sum(table[0]) or not sum(table[1]):
        raise DataError(
            "agreement needs good and bad replies among the labels: add some of the other sort"
        )
    value, low, high = kappa_of(table)
    n = counts.total()
    return Kappa(value=value, low=low, high=high, n=n, table=table, undecided=len(labels) - n)


def labelled_replies() -> list[tuple[Case, Observation, LabelledReply]]:
    """The labelled replies of this project, each as a case and what was seen of it."""
    mixed = load_yaml((SOURCE / "mixed.yaml").read_text(encoding="utf-8"))
    judged = load_yaml((SOURCE / "judged.yaml").read_text(encoding="utf-8"))
    replies = TypeAdapter(tuple[LabelledReply, ...]).validate_python(judged)
    verticals: dict[str, dict[str, Any]] = mixed["verticals"]
    topics = {agent: tuple(parts["topic"]) for agent, parts in verticals.items()}
    result: list[tuple[Case, Observation, LabelledReply]] = []
    for number, line in enumerate(replies, 1):
        agents = (*line.answers, *line.failed)
        turns = (Ask(user=line.user, expected=agents),)
        case = Case(
            id=f"judged-{number:02}", kind="single", domain="judged", turns=turns, topics=topics
        )
        observation = Observation(
            text=line.reply,
            visible_texts=(line.reply,),
            invoked=agents,
            answers=line.answers,
            failed=line.failed,
        )
        result.append((case, observation, line))
    return result


async def measure_judge(judge: Judge, quality: Quality) -> Kappa:
    """How far a judge agrees with the labelled replies of this project, pass against label."""
    labels: list[bool] = []
    verdicts: list[bool | None] = []
    for case, observation, line in labelled_replies():
        verdict = await judge.judge(case, observation)
        labels.append(line.good if quality == "good" else line.lawful)
        verdicts.append(None if verdict is None else verdict.score >= judge.rubric.pass_mark)
    return agreement(labels, verdicts)


Table = tuple[tuple[int, int], tuple[int, int]]
"""Counts: first no and yes, by second no and yes."""
_ADDED = 0.25
"""Verdicts that are added to each cell: without them a cell in which none was seen is taken for impossible.
Found by simulation: `python -m tests.coverage`."""


def kappa_of(table: Table) -> tuple[float, float, float]:
    """Kappa (Cohen 1960) and the ends of its interval by profile likelihood (Venzon and Moolgavkar
    1988, "A method for computing profile-likelihood-based confidence intervals").

    The ends are the least and the greatest kappa among all laws under which these counts are not much
    less likely than under the best one; the two rates of yes may be any. Zero, with the whole range
    for an interval, where one of the two always says the same.
    """
    counts = np.array(table, dtype=np.float64)
    if not counts.sum(axis=0).all() or not counts.sum(axis=1).all():
        return 0.0, -1.0, 1.0
    shares = counts / counts.sum()
    by_chance = float(shares.sum(axis=0) @ shares.sum(axis=1))
    kappa = (float(np.trace(shares)) - by_chance) / (1 - by_chance)
    low, high = _ends(counts + _ADDED)
    return kappa, min(kappa, low), max(kappa, high)


def _differing(law: Floats) -> float:
    """How often the two differ, as a share of how often they would by chance: 1 less kappa. Both this and
    the chances of the law are logarithms, so that a search is as fine next to 1 as elsewhere."""
    first = np.logaddexp(law[:, 0], law[:, 1])
    second = np.logaddexp(law[0], law[1])
    by_chance = np.logaddexp(first[0] + second[1], first[1] + second[0])
    return float(np.logaddexp(law[0, 1], law[1, 0]) - by_chance)


def _ends(counts: Floats) -> tuple[float, float]:
    best = np.log(counts / counts.sum())
    allowed = normal_reach() ** 2 / 2
    # A table that is the same from both sides is a saddle, which no search would leave.
    start = best.ravel() + np.array([0.0, 0.001, 0.002, 0.004])

    def law(figures: Floats) -> Floats:
        """Any four figures as the logarithms of chances, which come to 1."""
        return (figures - np.logaddexp.reduce(figures)).reshape(best.shape)

    def room(figures: Floats) -> float:
        """How much less likely the counts may still be than they are under this law."""
        return allowed - float((counts * (best - law(figures))).sum())

    least = least_where(lambda figures: _differing(law(figures)), start, room)
    most = -least_where(lambda figures: -_differing(law(figures)), start, room)
    return 1 - exp(most), 1 - exp(least)
