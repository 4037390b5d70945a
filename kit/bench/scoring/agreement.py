"""How far a judge can be trusted: its verdicts set against labels given by hand, with Cohen's kappa."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import TypeAdapter

from kit.bench.case import Ask, Case
from kit.bench.scoring.judge import Judge, Rubric, RuleJudge, read_rubric
from kit.bench.scoring.observation import Observation
from kit.bench.scoring.quality import policy, response_quality
from kit.bench.scoring.scorers import Scorer
from kit.bench.statistics.distributions import kappa_of
from kit.compose.yaml_loader import load_yaml
from kit.core.errors import DataError
from kit.core.value import Value
from kit.home import HOME
from kit.metrics.estimate import Estimate

SOURCE = HOME / "data" / "source" / "cases"
Quality = Literal["good", "lawful"]
"""The two labels of data/source/cases/judged.yaml."""
RULES: Mapping[Quality, Scorer] = {"good": response_quality, "lawful": policy}
"""Label -> the rule that stands for it; its rubric has the rule's name."""


class LabelledReply(Value):
    """A reply of data/source/cases/judged.yaml, with its labels."""

    user: str
    answers: dict[str, str] = {}
    failed: tuple[str, ...] = ()
    reply: str
    good: bool
    lawful: bool


class Kappa(Estimate):
    """Agreement beyond what chance would bring (Cohen 1960), with its large-sample interval
    (Fleiss, Cohen and Everitt 1969)."""

    table: tuple[tuple[int, int], tuple[int, int]]
    """Labelled no and yes, by judged no and yes."""
    undecided: int = 0
    """Replies the judge gave no verdict on; they are in no cell."""

    @property
    def agreed(self) -> int:
        return self.table[0][0] + self.table[1][1]

    def __str__(self) -> str:
        rest = f", {self.undecided} undecided" if self.undecided else ""
        return f"kappa {self:.3f}: {self.agreed} of {self.n} verdicts as labelled{rest}"


def agreement(labels: Sequence[bool], verdicts: Sequence[bool | None]) -> Kappa:
    """Kappa of verdicts against labels. Raises DataError where one of the two never varies: chance
    alone would agree then."""
    counts = Counter(
        (label, verdict)
        for label, verdict in zip(labels, verdicts, strict=True)
        if verdict is not None
    )
    if len({label for label, _ in counts}) < 2 or len({verdict for _, verdict in counts}) < 2:
        raise DataError(
            "agreement needs good and bad replies among the labels, and among the verdicts: add some of the other sort"
        )
    table = ((counts[False, False], counts[False, True]), (counts[True, False], counts[True, True]))
    value, low, high = kappa_of(table)
    n = counts.total()
    return Kappa(value=value, low=low, high=high, n=n, table=table, undecided=len(labels) - n)


def labelled_replies() -> list[tuple[Case, Observation, LabelledReply]]:
    """The labelled replies of this project, each as a case and what was seen of it."""
    mixed, replies = (
        load_yaml((SOURCE / name).read_text(encoding="utf-8"))
        for name in ("mixed.yaml", "judged.yaml")
    )
    verticals: dict[str, dict[str, Any]] = mixed["verticals"]
    topics = {agent: tuple(parts["topic"]) for agent, parts in verticals.items()}
    result: list[tuple[Case, Observation, LabelledReply]] = []
    for number, line in enumerate(
        TypeAdapter(tuple[LabelledReply, ...]).validate_python(replies), 1
    ):
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


def print_agreement() -> int:
    """Prints how far the two judges by rule agree with the labelled replies, a line each."""
    for quality, scorer in RULES.items():
        rubric = read_rubric(scorer.__name__)
        print(
            agreement_line(rubric, asyncio.run(measure_judge(RuleJudge(rubric, scorer), quality)))
        )
    return 0


def agreement_line(rubric: Rubric, kappa: Kappa) -> str:
    """How far a judge by this rubric agrees with the labels, in a line."""
    return f"{rubric.id}, pass mark {rubric.pass_mark:g}: {kappa}"
