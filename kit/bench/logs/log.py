"""What every reader of a log returns: the samples of one system, whichever tool wrote them down."""

from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from math import isfinite
from struct import error as StructError
from typing import Any, cast
from zipfile import BadZipFile

from pydantic import Field

from kit.bench.statistics.verdict import Margin
from kit.core.errors import DataError
from kit.core.value import Value

MEASURED = ("seconds", "cost")
"""What a log may hold of a sample beside its scores; less of it is better."""
_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}


class LoggedSample(Value):
    """One sample as one system answered it once."""

    sample: str
    """What it is paired by."""
    epoch: int = 1
    """Which of its repeats it is, from 1 on."""
    scores: Mapping[str, float | None] = {}
    """Score -> its value; None where the scorer decided nothing."""
    error: str | None = None
    """Why it was not answered: no sample of its system, whatever scores stand beside it."""
    seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cost: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Dollars; None where the log does not say."""
    cluster: str | None = None
    """Samples of one cluster are about one thing, such as paraphrases of one question."""
    question: str = ""
    """A digest of what was asked and expected; empty where the log does not say."""

    def value(self, score: str) -> float | None:
        """Returns what one score, or measure, says of it."""
        if score in MEASURED:
            return getattr(self, score)
        return self.scores.get(score)


class Log(Value):
    """All samples of one system."""

    name: str
    """As a report names it."""
    tool: str
    """Who wrote it, with the version where the log says so."""
    samples: tuple[LoggedSample, ...]
    scorers: Mapping[str, str] = {}
    """Score -> how its scorer was set up; empty where the log does not say."""
    not_numeric: Mapping[str, str] = {}
    """Score -> a value of it that is no number."""
    early_end: str = ""
    """How a run ended that did not play all of its samples, in words; empty where the log does not say so."""
    is_virtual: bool = False
    """Whether its seconds are those of simulated time."""
    sub_agents: str = ""
    """How a grid played the sub-agents; empty where the log does not say."""
    verdicts: tuple[str, ...] = ()
    """The scores and measures that its run is compared by; empty where the log does not say."""
    margin: Margin | None = None
    """The difference that its run takes for too small to matter."""

    @property
    def scores(self) -> list[str]:
        """The names of all scores that are a number at least once, or never say anything, in order."""
        names: set[str] = set()
        numbers: set[str] = set()
        for sample in self.samples:
            names.update(sample.scores)
            numbers.update(name for name, value in sample.scores.items() if value is not None)
        return sorted(names - (self.not_numeric.keys() - numbers))


@contextmanager
def whole(path: object, noun: str) -> Generator[None]:
    """Raises DataError in the place of what a file that is no whole log of its tool makes its reader raise."""
    try:
        yield
    except (BadZipFile, LookupError, TypeError, ValueError, AttributeError, StructError) as error:
        raise DataError(f"{path} holds no whole {noun} ({error!r})") from error


def number_of(value: object) -> float | None:
    """Returns a number or a yes or no as a float; None for whatever is neither."""
    if isinstance(value, bool | int | float) and isfinite(value):
        return float(value)
    return None


def number_in(text: str) -> float | None:
    """Returns the number that a text is, 1 for yes and true and 0 for no and false; None for any other."""
    word = text.lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        return number_of(float(word))
    except ValueError:
        return None


def cluster_in(fields: object, cluster: str | None) -> str | None:
    """Returns the cluster that the metadata of a sample names under this field; None where it has none."""
    if cluster is None or not isinstance(fields, Mapping):
        return None
    value = cast("Mapping[str, Any]", fields).get(cluster)
    if value is None:
        return None
    return str(value)


def choose_system(path: object, names: Collection[str], system: str | None) -> str:
    """Returns the system of a file that holds several. Raises DataError where it must be named, or
    there is none of that name."""
    if system is None and len(names) == 1:
        return next(iter(names))
    if system in names:
        return cast("str", system)
    choice = ", ".join(f"{path}#{name}" for name in sorted(names))
    if system is None:
        raise DataError(f"{path} holds {len(names)} systems: name one, as in {choice}")
    raise DataError(f"{path} holds no system {system!r}; there are {choice}")
