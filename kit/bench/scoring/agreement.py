"""How far a judge can be trusted: its verdicts set against labels given by hand, with Cohen's kappa."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import TypeAdapter

from kit.bench.case import Ask, Case
from kit.bench.scoring.judge import Judge
from kit.bench.scoring.observation import Observation
from kit.bench.statistics.kappa import kappa_of
from kit.compose.yaml_loader import load_yaml
from kit.core.errors import DataError
from kit.core.value import Value
from kit.home import HOME
from kit.metrics.estimate import Estimate

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
