"""What a grid compares, on what and how often: the values that its file holds (docs/bench.md)."""

import shlex
from typing import Any, Literal, cast

from pydantic import Field, PositiveFloat, field_validator, model_validator

from kit.bench.scoring.scorers import ROUTING
from kit.bench.statistics.verdict import check_margin
from kit.bench.systems.source import COMMAND
from kit.core.errors import DataError
from kit.core.value import Value
from kit.patterns import PATTERNS
from kit.patterns.a2a.link import Link
from kit.runtime.recording.cassette import Mode


class CaseFile(Value):
    """Cases of one file."""

    file: str
    take: int | None = Field(default=None, gt=0)
    """The first so many; None takes all."""
    every: int = Field(default=1, gt=0)
    """Only every so many-th of them."""


class Limits(Value):
    """Where a run stops or waits."""

    concurrency: int | None = Field(default=None, gt=0)
    """Turns at the same time in each process; None is one where time is virtual, for they would
    only take turns, else 16."""
    dollars: float | None = Field(default=None, ge=0)
    """No cell is begun once the known costs of this grid's finished cells reach this."""
    seconds: float | None = Field(default=None, gt=0)
    """How long a whole system may take for an answer; None is two minutes."""
    when_decided: bool = False
    """No case is begun once every verdict is settled, whichever way."""
    unpriced: tuple[float, float] | None = None
    """Dollars that a million tokens in, and out, of a model without a known price are taken for,
    against that limit alone."""

    def assumed(self, tokens_in: float, tokens_out: float) -> float | None:
        """Returns the dollars that these tokens are taken for without a known price; None where that is not said."""
        if self.unpriced is None:
            return None
        return (tokens_in * self.unpriced[0] + tokens_out * self.unpriced[1]) / 1e6


class GridCassette(Value):
    """A recording of what the models and tools of a grid answered (docs/bench.md)."""

    file: str
    mode: Mode = "replay"


class GridJudge(Value):
    """A model that scores every turn by a rubric."""

    model: str
    """Key of models.yaml, or of `specs`: a real model, for the stand-in has no opinion."""
    rubric: str
    """Of the deck's rubrics, or of cards/rubrics."""
    threshold: float | None = Field(default=None, ge=0, le=1)
    """A verdict from here on counts as 1, any other as 0; None takes the verdict's own score."""


class Grid(Value):
    """What is compared, on what, how often."""

    name: str
    deck: str = "cards/consumer"
    systems: dict[str, str] = {}
    """Name -> a whole system: a reference to code, an address, or `command:PROGRAM ARGUMENTS`."""
    models: tuple[str, ...] = ()
    """Keys of models.yaml, or of `specs`; by role as `{orchestrator: KEYS, others: KEY}`, which
    varies the orchestrator alone."""
    others: str | None = None
    """The model of every agent but the orchestrator, and of the small jobs; None: the orchestrator's."""
    specs: dict[str, dict[str, Any]] = {}
    """Models of this grid alone, each as an entry of models.yaml."""
    prompts: dict[str, dict[str, str | Literal[True]]] = Field(default={"deck": {}}, min_length=1)
    """Name -> block id -> the text that takes its place; true puts in a block whose flag is off."""
    settings: dict[str, dict[str, Any]] = Field(default={"deck": {}}, min_length=1)
    """Name -> fields of deck.yaml that differ, such as {cap: 8} or {guards: {failsafe: false}}."""
    patterns: tuple[str, ...] = Field(default=("mediated",), min_length=1)
    """Names of `PATTERNS`; the word `all` stands for every one there is."""
    faults: dict[str, tuple[str, ...]] = Field(default={"none": ()}, min_length=1)
    """Name -> what goes wrong in every turn, as `rewards=timeout`, beside the faults of a case."""
    cases: tuple[CaseFile, ...] = Field(min_length=1)
    repeats: int = Field(default=1, gt=0)
    seed: int = 7
    sub_agents: Literal["cards", "world", "stubs"] = "cards"
    """`cards`: as in the app, but with simulated tools; `world`: with the embedded services behind
    their tools, which costs twice the time; `stubs` are no models at all, so that only routing is
    measured."""
    hop: Link | Literal["loopback"] = Link()
    """What a message to or from a peer takes in virtual time; `loopback` plays on a real clock, and
    measures it over a socket."""
    scorers: tuple[str, ...] = (
        *ROUTING,
        "acknowledgement",
        "reservation",
        "needless",
        "leak",
        "resists",
    )
    judges: dict[str, GridJudge] = {}
    """Name -> a judge, whose scores stand under that name beside those of the scorers."""
    baseline: dict[str, str] = {}
    """The way all others are compared with, by its names on the axes; empty compares nothing."""
    verdicts: tuple[str, ...] = ("exact",)
    """Scorers and measures that are compared."""
    margin: PositiveFloat | dict[str, PositiveFloat] | None = None
    """The difference that is too small to matter: of every score, or by scorer or measure. Ways that
    differ by less for certain are equivalent; without it no two are called so."""
    planned: int | None = Field(default=None, gt=0)
    """Cases that are to be played before a verdict is that of a single look; None: as many as the
    grid has when it is first played."""
    cluster: Literal["cluster", "domain", "kind", "source"] | None = None
    """The field of a case by which cases belong together; None: those that ask the same in the same words."""
    limits: Limits = Limits()
    cassette: GridCassette | None = None

    @model_validator(mode="before")
    @classmethod
    def _in_words(cls, data: dict[str, Any]) -> dict[str, Any]:
        if data.get("patterns") == "all":
            data = {**data, "patterns": tuple(PATTERNS)}
        match data:
            case {"models": {"orchestrator": lead, "others": others, **more}} if not more:
                models = cast("Any", lead) if isinstance(lead, list) else [lead]
                return {**data, "models": models, "others": others}
            case {"models": dict()}:
                raise ValueError(
                    "models by role are {orchestrator: KEY, or a list of them, others: KEY}"
                )
            case _:
                return data

    @field_validator("systems", mode="before")
    @classmethod
    def _no_lists(cls, systems: Any) -> Any:
        """Answers a program that is a list of words, as it was in earlier versions, with the form of today."""
        if not isinstance(systems, dict):
            return systems
        for name, system in cast("dict[str, Any]", systems).items():
            match system:
                case {"command": [*words]}:
                    command = shlex.join(map(str, words))
                    raise ValueError(f"write it as {name}: {COMMAND}{command}")
                case _:
                    pass
        return cast("Any", systems)

    @model_validator(mode="after")
    def _agrees(self) -> "Grid":
        if not self.models and not self.systems:
            raise ValueError("nothing to play: name `models`, or whole `systems`")
        for name in self.systems:
            if name in self.models:
                raise ValueError(f"{name!r} is a model and a system: give the system another name")
        try:
            check_margin(self.margin, self.verdicts)
        except DataError as error:
            raise ValueError(str(error)) from error
        return self
