"""A grid as a file says it: models x prompts x settings x patterns x faults x cases x repeats (docs/bench.md)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from kit.bench.case import Case
from kit.bench.grid.grid import Grid
from kit.bench.grid.results import AXES
from kit.bench.own_parts import NONE, OwnParts
from kit.bench.scoring.judge import Judge, Rubric, read_rubric
from kit.bench.scoring.scorers import SCORERS, Scorer
from kit.bench.statistics.measures import MEASURES
from kit.bench.systems.case_table import read_case_file
from kit.bench.systems.source import SystemSource, check_apart, read_source
from kit.compose.deck import Block, Deck, load_deck
from kit.compose.models import load_models
from kit.compose.parts import DeckSettings
from kit.compose.registry import Registry
from kit.compose.yaml_source import Faults, Source, build, parse_file
from kit.core.errors import DataError, KitError, nearest
from kit.core.fault import Fault, parse_all
from kit.core.model import OFFLINE, ModelSpec
from kit.core.value import Value
from kit.home import HOME
from kit.models.access import ModelAccess
from kit.patterns import patterns_of
from kit.patterns.a2a import A2A, a2a_over
from kit.patterns.a2a.link import Link
from kit.runtime.pattern import Pattern

V = TypeVar("V", bound=Value)
_KINDS = {"offline": "offline stand-in", "simulated": "simulated"}
"""Providers whose models know no clock but the turn's own: they run in virtual time."""


@dataclass(frozen=True)
class GridSpec:
    """A grid whose every name was found."""

    grid: Grid
    deck: Deck
    cases: tuple[Case, ...]
    faults: Mapping[str, tuple[Fault, ...]]
    decks: Mapping[tuple[str, str], Deck]
    """(prompt, setting) -> the deck it is."""
    traces: Path | None = None
    """The store that every turn is kept in; None keeps none."""
    endpoints: Mapping[str, str] = field(default_factory=dict[str, str])
    """Model -> where the environment sends its requests, if that is not what its entry says."""
    own: OwnParts = NONE
    rubrics: Mapping[str, Rubric] = field(default_factory=dict[str, Rubric])
    """Judge -> what it judges by."""
    systems: Mapping[str, SystemSource] = field(default_factory=dict[str, SystemSource])
    """Name -> the whole system that has it."""

    @property
    def models(self) -> dict[str, ModelSpec]:
        return {key: self.deck.models[key] for key in self.grid.models}

    def at(self, access: ModelAccess) -> "GridSpec":
        """The same grid where its models are reached like this. Raises SettingsError for a key that is not set."""
        if self.grid.cassette is not None and self.grid.cassette.mode != "record":
            # The recording answers, wherever it was made.
            return self
        urls: dict[str, str] = {}
        for key, model in self.every_model.items():
            url = access.moved_endpoint(model)
            if url:
                urls[key] = url
        return replace(self, endpoints=urls)

    @property
    def every_model(self) -> dict[str, ModelSpec]:
        """The models of its ways, the one of the other agents where that is another, and those of the judges."""
        keys = list(self.grid.models)
        if self.grid.others is not None:
            keys.append(self.grid.others)
        for judge in self.grid.judges.values():
            keys.append(judge.model)
        return {key: self.deck.models[key] for key in keys}

    @property
    def patterns(self) -> Mapping[str, Pattern]:
        """Every pattern by name, the grid's own with the kit's; peers are behind the link that the
        grid says, or a socket."""
        return {**patterns_of(self.deck), A2A.name: a2a_over(self.link), **self.own.patterns}

    @property
    def link(self) -> Link | None:
        """What stands between an agent and its peers; None: a socket of this machine.

        A grid with a recording has no socket: it is replayed in virtual time.
        """
        if not self.virtual and self.grid.cassette is None:
            return None
        if isinstance(self.grid.hop, Link):
            return self.grid.hop
        return Link()

    @property
    def scorers(self) -> Mapping[str, Scorer | Judge]:
        """Every scorer by name, the grid's own judges with the kit's rules."""
        return {**SCORERS, **self.own.judges}

    @property
    def virtual(self) -> bool:
        """Whether all its time is virtual: nothing is called that is elsewhere, no model, no MCP
        server, no peer and no agent that is not the kit's."""
        if self.grid.hop == "loopback" or self.systems:
            return False
        if self.grid.sub_agents == "world" and self.deck.tools.servers:
            return False
        if self.runs_agents:
            return False
        for model in self.every_model.values():
            if model.provider not in _KINDS:
                return False
        return True

    @property
    def runs_agents(self) -> bool:
        """Whether it asks agents of other frameworks: what they wait for, nobody here knows."""
        return self.grid.sub_agents != "stubs" and bool(self.deck.code.agents)

    @property
    def replayed(self) -> bool:
        """Whether a recording answers for its models."""
        return self.grid.cassette is not None and self.grid.cassette.mode == "replay"

    @property
    def timeless(self) -> bool:
        """Whether it can be played in virtual time: it is simulated, or was recorded."""
        # No recording holds what an agent of another framework answered: it is asked again.
        return self.virtual or (self.replayed and not self.runs_agents)

    @property
    def kinds(self) -> dict[str, str]:
        """Model, or system -> what its figures are: "simulated", "offline stand-in" or "measured"."""
        systems = dict.fromkeys(self.systems, "measured")
        other_model = self.grid.others
        if other_model is not None and self.deck.models[other_model].provider not in _KINDS:
            return dict.fromkeys(self.grid.models, "measured") | systems
        kinds = {key: _KINDS.get(model.provider, "measured") for key, model in self.models.items()}
        return kinds | systems

    @property
    def keeps_turns(self) -> bool:
        """Whether its turns are kept, to be scored again by a judge that was mended or is new."""
        return bool(self.grid.judges or self.own.judges) or "measured" in self.kinds.values()

    @property
    def scored_turns(self) -> int:
        """Turns of one way that count, each played once."""
        return sum(len(case.scored) for case in self.cases)

    @property
    def concurrency(self) -> int:
        """Turns at the same time in each process."""
        if self.grid.limits.concurrency is not None:
            return self.grid.limits.concurrency
        # In virtual time turns would only wait for one another.
        return 1 if self.timeless else 16


def read_grid(path: Path, model: str | None = None) -> GridSpec:
    """Reads a grid and all it names. Raises DataError, one sentence with file and line and the nearest known name.

    `model` takes the place of all but the baseline's; the file's own recording is not of that one.
    """
    faults = Faults()
    source = parse_file(path, faults)
    if source is None or faults:
        raise DataError(faults.in_order()[0])
    grid = build_value(Grid, source, extra={"name": source.value.get("name", path.stem)})
    if model is not None:
        models = dict.fromkeys((grid.baseline.get("model", model), model))
        changes = {"models": tuple(models), "name": f"{grid.name}-{model}", "cassette": None}
        grid = grid.model_copy(update=changes)
    if grid.cassette is not None:
        file = beside(grid.cassette.file, path)
        is_beside = file.suffix == ".jsonl" and file.resolve().is_relative_to(path.resolve().parent)
        if grid.cassette.mode != "replay" and not is_beside:
            raise DataError(
                f"{source.at('cassette')}: a grid writes to .jsonl files in its own folder; else give --cassette FILE"
            )
        cassette = grid.cassette.model_copy(update={"file": str(file)})
        grid = grid.model_copy(update={"cassette": cassette})
    try:
        deck = load_deck(beside(grid.deck, path))
    except KitError as error:
        raise DataError(f"{source.at('deck')}: {' '.join(str(error).split())}") from error
    return make_spec(grid, deck, source, lambda agents: _cases(grid, agents, path))


def make_spec(
    grid: Grid,
    deck: Deck,
    source: Source,
    cases: Callable[[Sequence[str]], Iterable[Case]],
    own_parts: OwnParts = NONE,
) -> GridSpec:
    """The grid with all it names. `cases` gives them for the sub-agents there are. Raises DataError."""
    deck = _with_models(deck, grid, source, own_parts.models)
    agents = [card.id for card in deck.active_sub_agents(deck.cards[deck.settings.orchestrator])]
    systems = _systems(grid, source)
    spec = GridSpec(grid, deck, (), {}, {}, own=own_parts.with_code_of(deck), systems=systems)
    _check_names(spec, source)
    rubrics = {name: _rubric(spec, name, source) for name in grid.judges}
    decks: dict[tuple[str, str], Deck] = {}
    for prompt in grid.prompts:
        for setting in grid.settings:
            decks[prompt, setting] = _deck(deck, grid, prompt, setting, source)
    wrong: dict[str, tuple[Fault, ...]] = {}
    for name, texts in grid.faults.items():
        wrong[name] = _parse_faults(texts, deck, name, source)
        if grid.sub_agents == "stubs":
            _check_played(wrong[name], deck, source.at("faults", name))
    spec = replace(spec, cases=tuple(cases(agents)), faults=wrong, decks=decks, rubrics=rubrics)
    if not spec.cases:
        raise DataError(
            f"{source.at('cases')}: no case to play; write one a line, or take more of them"
        )
    return spec


def build_value(model: type[V], source: Source, *path: str | int, extra: dict[str, Any]) -> V:
    """The value of `model` under `path`, with `extra` fields set. Raises DataError with the first fault."""
    faults = Faults()
    value = build(model, source, faults, *path, extra=extra)
    if value is None:
        raise DataError(faults.in_order()[0])
    return value


def _with_models(
    deck: Deck, grid: Grid, source: Source, given_models: Mapping[str, ModelSpec]
) -> Deck:
    """The deck with the grid's own models, those of cards/models.yaml, and with the grid's seed in
    every simulated one."""
    models = {
        OFFLINE.key: OFFLINE,
        **load_models(HOME / "cards" / "models.yaml"),
        **deck.models,
    }
    for key in grid.specs:
        models[key] = build_value(ModelSpec, source, "specs", key, extra={"key": key})
    models.update(given_models)
    for key, model in models.items():
        if model.law:
            models[key] = model.model_copy(update={"seed": grid.seed})
    return replace(deck, models=Registry("model", models))


def _check_known(name: str, noun: str, registry: Iterable[str], where: str) -> None:
    """Raises DataError, with the place and the nearest name, for a name that is none of these."""
    names = list(registry)
    if name not in names:
        raise DataError(f"{where}: unknown {noun} {name!r}: {nearest(name, names)}")


def _check_names(spec: GridSpec, source: Source) -> None:
    grid = spec.grid
    models = spec.deck.models
    if grid.others is not None:
        _check_known(grid.others, "model", models, source.at("models", "others"))
    for names, noun, registry in (
        ("models", "model", models),
        ("patterns", "pattern", {**patterns_of(spec.deck), **spec.own.patterns}),
        ("scorers", "scorer", spec.scorers),
        ("verdicts", "scorer or measure", (*grid.scorers, *grid.judges, *MEASURES)),
    ):
        for index, name in enumerate(getattr(grid, names)):
            where = source.at(names, index)
            if names == "verdicts" and name in spec.scorers and name not in registry:
                raise DataError(
                    f"{where}: this grid does not score by {name!r}: name it under `scorers` too"
                )
            _check_known(name, noun, registry, where)
    ways: dict[str, Any] = {axis: getattr(grid, f"{axis}s") for axis in AXES}
    ways["model"] = (*grid.models, *grid.systems)
    for axis, name in grid.baseline.items():
        where = source.at("baseline", axis)
        _check_known(axis, "axis", ways, where)
        _check_known(name, axis, ways[axis], where)


def _systems(grid: Grid, source: Source) -> dict[str, SystemSource]:
    """The systems that a grid's file names, from its folder on. Raises DataError for what is none."""
    folder = Path(source.file).parent
    systems: dict[str, SystemSource] = {}
    for name, value in grid.systems.items():
        try:
            systems[name] = read_source(name, value, folder)
        except KitError as error:
            raise DataError(f"{source.at('systems', name)}: {error}") from error
    check_apart(systems.values())
    return systems


def _rubric(spec: GridSpec, name: str, source: Source) -> Rubric:
    """What a judge goes by. Raises DataError where its name, its model or its rubric cannot be used."""
    judge = spec.grid.judges[name]
    models = spec.deck.models
    rubrics = spec.deck.rubrics
    if name in spec.scorers or name in MEASURES:
        raise DataError(
            f"{source.at('judges', name)}: {name!r} is the name of a scorer or measure; choose one of your own"
        )
    where = source.at("judges", name, "model")
    _check_known(judge.model, "model", models, where)
    if models[judge.model].provider in _KINDS:
        raise DataError(f"{where}: {judge.model!r} is no language model: it has no verdict to give")
    if judge.rubric in rubrics:
        rubric = rubrics[judge.rubric]
        return Rubric(id=judge.rubric, version=rubric.version, text=rubric.text)
    try:
        return read_rubric(judge.rubric)
    except DataError as error:
        raise DataError(f"{source.at('judges', name, 'rubric')}: {error}") from error


def _deck(deck: Deck, grid: Grid, prompt: str, setting: str, source: Source) -> Deck:
    blocks: dict[str, Block] = dict(deck.blocks)
    for block, text in grid.prompts[prompt].items():
        _check_known(block, "block", blocks, source.at("prompts", prompt, block))
        change = {"flag": None} if text is True else {"text": text}
        blocks[block] = blocks[block].model_copy(update=change)
    settings = deck.settings
    changes = grid.settings[setting]
    if changes:
        fields = settings.model_dump(mode="json")
        for name, value in changes.items():
            if isinstance(value, dict) and isinstance(fields.get(name), dict):
                fields[name] |= value
            else:
                fields[name] = value
        settings = build_value(DeckSettings, source, "settings", setting, extra=fields)
    return replace(deck, blocks=Registry("block", blocks), settings=settings)


def _check_played(faults: Iterable[Fault], deck: Deck, where: str) -> None:
    """Raises DataError for a fault of a sub-agent that no model plays: its cells would all be void."""
    for fault in faults:
        if fault.where != deck.settings.orchestrator:
            raise DataError(
                f"{where}: {fault.where!r} is a stub, in which nothing goes wrong: take `sub_agents: cards` or `world`"
            )


def _parse_faults(texts: Iterable[str], deck: Deck, name: str, source: Source) -> tuple[Fault, ...]:
    try:
        return parse_all(texts, deck.cards, deck.settings.orchestrator)
    except KitError as error:
        raise DataError(f"{source.at('faults', name)}: {error}") from error


def _cases(grid: Grid, agents: Sequence[str], path: Path) -> Iterable[Case]:
    # Whole systems alone have agents of their own, whose names no deck knows.
    names = agents if grid.models else None
    first: dict[str, str] = {}
    for part in grid.cases:
        file = beside(part.file, path)
        stop = None
        if part.take is not None:
            stop = part.take * part.every
        for case in islice(read_case_file(file, names), 0, stop, part.every):
            if case.id in first:
                raise DataError(
                    f"{file}: case {case.id!r} is in {first[case.id]} too; give one of them another id"
                )
            first[case.id] = str(file)
            yield case


def beside(name: str, path: Path) -> Path:
    """A file named by a grid: beside it, else in the checkout."""
    file = path.parent / name
    if file.exists() or not (HOME / name).exists():
        return file
    return HOME / name
