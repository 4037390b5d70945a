"""Judges that a caller brings to compare(): tried on canned turns first, and named where they fail."""

import sysconfig
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kit.bench.case import Case
from kit.bench.scoring.judge import Judge, LLMJudge
from kit.bench.scoring.observation import Observation
from kit.bench.scoring.scorers import Scorer
from kit.core.errors import FOREIGN, DataError, describe_error
from kit.core.outcome import ErrorClass
from kit.home import HOME
from kit.models.diagnosis import class_of, status_of

_NOT_OWN = (HOME / "kit", Path(sysconfig.get_paths()["stdlib"]))
"""Folders of code that no caller wrote."""


@dataclass(frozen=True)
class Loss:
    """A verdict that was not given: by what class of fault, the developer's line, and which judge is to blame."""

    error_class: ErrorClass
    line: str
    blamed: str = ""
    """Empty where whoever was played lost it."""


class VerdictLost(Exception):
    """Raised in the place of a verdict."""

    def __init__(self, loss: Loss):
        self.loss = loss
        super().__init__(loss.line)


def judge_in_words(name: str) -> str:
    """Names a judge in a sentence."""
    return f"judge {name!r}"


async def own_scores(
    judges: Mapping[str, Scorer | Judge], case: Case, observation: Observation
) -> dict[str, float | None]:
    """Asks one judge after the other. Raises VerdictLost for the first that fails: nothing else is at fault."""
    scores: dict[str, float | None] = {}
    for name, judge in judges.items():
        try:
            scores[name] = await _score(judge, case, observation)
        # Somebody else's code: it may raise anything.
        except FOREIGN as error:
            # A judge that asks a model of its own fails with that model's endpoint, too.
            is_its_own = status_of(error) is None
            error_class = "judge" if is_its_own else class_of(error)
            line = f"{judge_in_words(name)}: {describe_error(error)}{own_line(error)}"
            raise VerdictLost(Loss(error_class, line, judge_in_words(name))) from error
    return scores


async def try_judges(judges: Mapping[str, Scorer | Judge], case: Case) -> None:
    """Shows three canned turns to every judge, before the first turn is played and paid for.

    Raises DataError, with judge, error and line, for one that cannot score them. Judges whose code
    is the kit's own are not tried: each trial would be a paid call.
    """
    for name, judge in judges.items():
        if isinstance(judge, LLMJudge):
            continue
        for kind, observation in canned_turns(case).items():
            try:
                await own_scores({name: judge}, case, observation)
            except VerdictLost as lost:
                raise DataError(
                    f"{lost}, on a canned turn {kind}; no model was called, mend the judge first"
                ) from lost


def canned_turns(case: Case) -> dict[str, Observation]:
    """Three turns as a grid can see them, over the first scored message of a case: kind -> turn."""
    turn = case.scored[0]
    ask = case.turns[turn]
    # Of all that is set here nothing is unusual: a judge that fails on it fails on most turns.
    asked = Observation(
        turn=turn,
        invoked=ask.expected,
        intent_count=len(ask.expected),
        reported_intents=len(ask.expected),
        queries={agent: ask.queries.get(agent, ask.user) for agent in ask.expected},
    )
    text = "Here is what I found."
    apology = "I could not look that up just now."
    return {
        "that was answered": asked.replace(text=text, answers=dict.fromkeys(ask.expected, text)),
        "that failed": asked.replace(status="failed", text=apology, failed=ask.expected),
        "that asked nobody": Observation(turn=turn, text="What can I do for you?"),
    }


async def _score(judge: Scorer | Judge, case: Case, observation: Observation) -> float | None:
    if callable(judge):
        value = judge(case, observation)
    else:
        verdict = await judge.judge(case, observation)
        value = None if verdict is None else verdict.score
    if value is None:
        return None
    score = float(value)
    if not 0 <= score <= 1:
        raise ValueError(f"gave {value!r}; a score is a number from 0 to 1, or None")
    return score


def own_line(error: BaseException) -> str:
    """The innermost line of the caller's own code that an error came through, in brackets; empty without one."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        is_own = not any(map(path.is_relative_to, _NOT_OWN))
        if is_own and "site-packages" not in frame.filename:
            return f" ({path.name}:{frame.lineno}, in {frame.name})"
    return ""
