"""compare(): a grid of model objects, patterns, cases and judges that one has in Python, kept and
resumed like one of a file."""

import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.bench.case import Case
from kit.bench.grid.comparison import Comparison, Summary
from kit.bench.grid.forecast import announce
from kit.bench.grid.grid import Grid
from kit.bench.grid.grid_file import GridSpec, build_value, make_spec
from kit.bench.grid.player import Opener
from kit.bench.grid.report import compare_run, report
from kit.bench.grid.run import Bar, Run, run_grid
from kit.bench.identity import digest
from kit.bench.own_parts import (
    GivenJudges,
    GivenModels,
    OwnParts,
    own_judges,
    own_models,
    own_patterns,
    tools_identity,
)
from kit.bench.systems.case_table import GivenCases, file_name, given_cases
from kit.compose.deck import Deck, load_deck
from kit.compose.yaml_source import Source
from kit.experiment_kits import ExperimentKits
from kit.runtime.pattern import Pattern
from kit.runtime.pattern import Run as RunTurn
from kit.runtime.team import Model, Models
from kit.tools.deck_tools import given_tools
from kit.wire import Kit

if TYPE_CHECKING:
    from kit.bench.charts.frame import Frame


@dataclass(frozen=True)
class GridResult:
    """What a comparison came to. Its files are in `run.folder`, and the page Benchmarks shows them."""

    spec: GridSpec = field(repr=False)
    run: Run
    text: str = field(repr=False)
    """The report in Markdown: every way with its interval, every verdict with what would settle it."""

    @cached_property
    def frame(self) -> "Frame":
        """A row for each scored turn: its way, case, measures, and each score in a column of its name."""
        # Brings pandas and matplotlib.
        from kit.bench.charts.frame import load_frame

        return load_frame(self.run.folder)

    @property
    def ways(self) -> list[Summary]:
        """Every way by every measure of the verdicts, with its interval."""
        return self._compared[0]

    @property
    def verdicts(self) -> list[Comparison]:
        """Every way beside the baseline, paired by case; empty where there is but one way."""
        return self._compared[1]

    @cached_property
    def _compared(self) -> tuple[list[Summary], list[Comparison]]:
        return compare_run(self.spec, self.run.folder)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """Returns what the page of the run says of its ways and verdicts."""
        from kit.bench.run_page.content import read_content
        from kit.bench.run_page.page import section

        content = read_content(self.run.folder)
        parts = [section(name, content) for name in ("kinds", "verdicts", "ways")]
        return "".join(parts)


def compare(
    models: GivenModels,
    cases: GivenCases,
    *,
    patterns: Iterable[str | Pattern | RunTurn] = ("mediated",),
    judges: GivenJudges = (),
    deck: Deck | str | Path | None = None,
    tools: object = None,
    name: str = "",
    traces: bool = True,
    kits: ExperimentKits | None = None,
    **fields: Any,
) -> GridResult:
    """Plays every model with every pattern on every case, from wherever an earlier run was left,
    and says which is better.

    `models`: keys of models.yaml, LangChain chat models, alone or with a ModelSpec that has their
    price, and ModelSpecs to build one from; in a sequence, or in a mapping from a name of one's
    own. `patterns`: names, a Pattern, or an async function (call, ctx) -> Outcome. `judges` score
    beside the kit's scorers: functions (case, observation) -> 0 to 1 or None, or a Judge. `tools`
    come on top of the deck's and are called for real. `fields` are those of a grid's file, such as
    `settings`, `repeats`, `baseline`, `limits` (docs/bench.md); without a `baseline` the first
    pattern, else the first model, is the one to compare with. `kits` are opened instead of those of
    the environment. Keeps all in .kit/grids/<name>. Blocks, in a notebook too; when it is
    interrupted, finished cells are kept.

    Raises DataError, one sentence, for what cannot be compared, and whatever binding the deck
    raises; no model is called then.
    """
    kits = kits or ExperimentKits.of(virtual=False)
    spec, objects = _spec(
        models, cases, patterns, judges, deck or kits.settings.deck, tools, name, fields
    )
    kits = ExperimentKits.of(kits.settings, virtual=spec.virtual, cassette=kits.cassette)
    spec = spec.at(kits.access)
    opener = _ObjectKits(kits, objects, tools)
    return play_grid(spec, kits.settings.grids / spec.grid.name, opener, traces=traces)


def play_grid(spec: GridSpec, folder: Path, opener: Opener, *, traces: bool) -> GridResult:
    """Plays a grid in a thread beside a running loop, from wherever an earlier run was left."""
    sentence = announce(spec)
    if sentence:
        print(sentence, file=sys.stderr)
    stop = threading.Event()
    # The grid has a thread of its own, for a notebook's loop runs in this one.
    with Bar() as bar, ThreadPoolExecutor(1) as thread:
        job = thread.submit(
            run_grid, spec, folder, opener, 1, bar, lambda: not stop.is_set(), traces=traces
        )
        try:
            run = job.result()
        except KeyboardInterrupt:
            stop.set()
            raise
    return GridResult(spec, run, report(spec, run))


@dataclass(frozen=True)
class _ObjectKits:
    """Opens kits on model objects by the names they have in the grid."""

    kits: ExperimentKits
    models: Mapping[str, Model]
    tools: object

    def __call__(
        self, *, models: Models, deck: Deck, faults: bool
    ) -> AbstractAsyncContextManager[Kit]:
        if isinstance(models, Mapping):
            objects: Models = {role: self._object(model) for role, model in models.items()}
        else:
            objects = self._object(models)
        return self.kits(models=objects, deck=deck, faults=faults, tools=self.tools)

    def _object(self, model: Model) -> Model:
        if isinstance(model, str):
            return self.models.get(model, model)
        return model


class _Arguments(Source):
    """The arguments of a call in place of a file."""

    def at(self, *path: str | int) -> str:
        if path:
            return f"compare(), {'.'.join(map(str, path))}"
        return "compare()"


def _spec(
    models: GivenModels,
    cases: GivenCases,
    patterns: Iterable[str | Pattern | RunTurn],
    judges: GivenJudges,
    deck: Deck | str | Path,
    tools: object,
    name: str,
    fields: Mapping[str, Any],
) -> tuple[GridSpec, dict[str, Model]]:
    names, objects, specs, model_ids = own_models([models] if isinstance(models, str) else models)
    ways, own_pattern_objects, pattern_ids = own_patterns(patterns)
    rules, judge_ids = own_judges(judges)
    more_tools = given_tools(tools)
    parts = OwnParts(
        specs,
        own_pattern_objects,
        rules,
        {**model_ids, **pattern_ids, **judge_ids, **tools_identity(more_tools)},
    )
    cases = str(cases) if isinstance(cases, str | Path) else list(cases)
    baseline: dict[str, str] = {}
    if len(ways) > 1:
        baseline = {"pattern": ways[0]}
    elif len(names) > 1:
        baseline = {"model": names[0]}
    scorers = tuple(fields.get("scorers", Grid.model_fields["scorers"].default))
    values: dict[str, Any] = {
        "baseline": baseline,
        "verdicts": ("exact", *rules),
        **fields,
        "scorers": (*scorers, *rules),
        "name": name or f"compare-{digest(names, ways, cases, fields)[:6]}",
        "models": names,
        "patterns": ways,
        "cases": [{"file": file_name(cases)}],
    }
    # A deck that is an object has no folder: its cards are in the keys of the cells.
    if isinstance(deck, Deck):
        loaded = deck
        deck_name = Grid.model_fields["deck"].default
    else:
        loaded = load_deck(deck, more_tools.ids)
        deck_name = str(deck)
    source = _Arguments("compare()", values, None)
    grid = build_value(Grid, source, extra={"deck": deck_name})

    def cases_for(agents: Sequence[str]) -> Iterable[Case]:
        # Named for what it holds, so that a case which is put before others makes no other cells.
        return given_cases(cases, agents, lambda _, row: f"case-{digest(row)[:8]}")

    spec = make_spec(grid, loaded, source, cases_for, parts)
    return spec, objects
