"""compare_systems(): whole systems on the same cases, beside one of them, without a card or a deck."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kit.bench.case import Case
from kit.bench.grid.grid import CaseFile, Grid, Limits
from kit.bench.grid.grid_file import GridSpec
from kit.bench.identity import digest
from kit.bench.own_parts import GivenJudges, OwnParts, own_judges
from kit.bench.python_grid import GridResult, play_grid
from kit.bench.routing import star_deck
from kit.bench.scoring.expected_text import EXPECTED_TEXT
from kit.bench.scoring.scorers import ROUTING, Scorer
from kit.bench.statistics.verdict import Margin
from kit.bench.systems.case_table import GivenCases, file_name, given_cases
from kit.bench.systems.source import SystemSource, check_apart, load_code, read_source
from kit.core.errors import DataError
from kit.experiment_kits import ExperimentKits

AT_ONCE = 4
"""Answers that are waited for at the same time where nobody says how many."""
_NO_DECK = star_deck((), "Of systems that have agents of their own.")
Systems = Mapping[str, object] | Sequence[str]
"""Name -> a reference, an address, a command or the system itself; or references alone."""


def compare_systems(
    systems: Systems,
    cases: GivenCases,
    *,
    judges: GivenJudges = (),
    baseline: str | None = None,
    repeats: int = 1,
    margin: Margin | None = None,
    limits: Mapping[str, Any] = {},
    name: str = "",
    kits: ExperimentKits | None = None,
) -> GridResult:
    """Asks every system every case, from wherever an earlier run was left, and says which is better.

    `systems`: by name an async function of one text, a graph or an agent, a reference such as
    `./mine.py:answer`, an address, or `command:PROGRAM`; the last one is compared with where no
    `baseline` is named. `cases`: a file, or rows with the columns `message`, `expected_text`,
    `expected_agents`, `cluster`, `id`. `judges` are functions (case, observation) -> 0 to 1 or
    None. `limits` are those of a grid's file. Keeps all in .kit/grids/<name>. Blocks, in a notebook
    too; when it is interrupted, finished cells are kept. Raises DataError, one sentence, for what
    cannot be compared; nothing is asked then.
    """
    sources: list[SystemSource] = []
    pairs = systems.items() if isinstance(systems, Mapping) else zip(systems, systems, strict=True)
    for system_name, value in pairs:
        if isinstance(value, str):
            sources.append(read_source(system_name, value, Path.cwd()))
        else:
            sources.append(SystemSource(system_name, value, Path.cwd()))
    spec = systems_spec(
        sources,
        cases,
        judges=judges,
        baseline=baseline,
        repeats=repeats,
        margin=margin,
        limits=limits,
        name=name,
    )
    kits = kits or ExperimentKits.of(virtual=False)
    return play_grid(spec, kits.settings.grids / spec.grid.name, kits, traces=False)


def systems_spec(
    sources: Sequence[SystemSource],
    cases: GivenCases,
    *,
    judges: GivenJudges = (),
    baseline: str | None = None,
    limits: Mapping[str, Any] = {},
    name: str = "",
    **fields: Any,
) -> GridSpec:
    """The grid of these systems on these cases; `fields` are those of a grid's file, such as `repeats`
    and `margin`. Raises DataError for what cannot be played."""
    check_apart(sources)
    names = [source.name for source in sources]
    every = list(given_cases(cases))
    if not every:
        raise DataError(f"{cases}: no case to play; write one a row")
    rules, identities = own_judges(judges)
    scorers, verdicts = _scorers(every, rules)
    file = file_name(cases)
    if baseline is None and len(names) > 1:
        baseline = names[-1]
    if baseline is not None and baseline not in names:
        raise DataError(f"the baseline {baseline!r} is no system of these: {', '.join(names)}")
    try:
        grid = Grid(
            name=name or f"bench-{digest(names, file)[:6]}",
            systems={source.name: source.words for source in sources},
            cases=(CaseFile(file=file),),
            scorers=scorers,
            baseline={"model": baseline} if baseline else {},
            verdicts=verdicts,
            cluster="cluster" if any(case.cluster for case in every) else None,
            limits=Limits.model_validate({"concurrency": AT_ONCE, **limits}),
            **fields,
        )
    except ValidationError as error:
        fault = error.errors()[0]
        field = ".".join(map(str, fault["loc"])) or "the comparison"
        raise DataError(f"{field} cannot be used: {fault['msg'].lower()}") from error
    return GridSpec(
        grid,
        _NO_DECK,
        tuple(every),
        faults={"none": ()},
        decks={},
        own=OwnParts(judges=rules, identities=identities),
        systems={source.name: source for source in sources},
    )


def load_judges(references: Iterable[str], folder: Path) -> dict[str, Any]:
    """The functions that references name, each under its own name. Raises CodeError or DataError."""
    judges: dict[str, Any] = {}
    for reference in references:
        judge = load_code(reference, folder)
        if not callable(judge):
            raise DataError(f"{reference} is no function (case, observation) -> 0 to 1, or None")
        judges[reference.rpartition(":")[2]] = judge
    return judges


def _scorers(
    cases: Sequence[Case], rules: Mapping[str, Scorer | Any]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """By what the cases can be scored, and what of it is compared. Raises DataError where by nothing."""
    scorers: list[str] = []
    verdicts: list[str] = []
    asks = [case.turns[number] for case in cases for number in case.scored]
    if any(ask.expected_text is not None for ask in asks):
        scorers += EXPECTED_TEXT
        verdicts.append(EXPECTED_TEXT[0])
    if not all(ask.unlabelled for ask in asks):
        scorers += ROUTING
        verdicts.append("exact")
    scorers += rules
    verdicts += rules
    if not verdicts:
        raise DataError(
            "nothing says what a right answer is: give the cases a column expected_text or "
            "expected_agents, or name a judge of your own (--judge ./FILE.py:NAME)"
        )
    return tuple(scorers), tuple(verdicts)
