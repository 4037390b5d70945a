"""A cell of a grid: one case, one way, one repeat; its key names everything its outcome depends on.
Also the order in which cells are played, and which are not begun any more once a run must stop."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from kit.bench.grid.grid_file import GridSpec
from kit.bench.identity import digest
from kit.bench.systems.source import code_digest
from kit.compose.deck import Deck
from kit.patterns.a2a import A2A

FORMAT = 1
"""Raised when the same cell would now be written otherwise."""

NO_OUTCOME = {"page", "tools", "environment", "statuses", "visitor"}
"""Settings of a deck that decide no outcome: what the app shows, who asks there, and where code lies."""

Sample = tuple[int, int]
"""A case and its repeat: what ways are paired by."""


@dataclass(frozen=True, slots=True)
class Cell:
    """`case` is a place in the grid's cases; the other fields are names of the grid."""

    key: str
    model: str
    prompt: str
    setting: str
    pattern: str
    fault: str
    case: int
    repeat: int
    turn: str = ""
    """The name of its turns, whoever scores them; empty where they are not kept."""
    stored: str = ""
    """Its turns, where an earlier run has played them already (PlayedCell)."""

    @property
    def way(self) -> tuple[str, ...]:
        """Its names on the axes of a grid, in their order."""
        return (self.model, self.prompt, self.setting, self.pattern, self.fault)


def track(spec: GridSpec, cell: Cell) -> str:
    """Names a cell on a recording: what it is of, whatever its inputs are by now."""
    return f"{spec.cases[cell.case].id}#{cell.repeat} ({', '.join(cell.way)})"


def judge_track(spec: GridSpec, cell: Cell, judge: str, turn: int) -> str:
    """Names a judge's verdict on a turn of a cell on a recording."""
    return f"{judge} on turn {turn} of {track(spec, cell)}"


def tracks(spec: GridSpec) -> Iterator[str]:
    """Every track of a recording of this grid."""
    for cell in cells(spec):
        yield track(spec, cell)
        for judge, turn in product(spec.grid.judges, spec.cases[cell.case].scored):
            yield judge_track(spec, cell, judge, turn)


def judges_identity(spec: GridSpec) -> str:
    """A digest of the judges, each with its rubric, its threshold and its model; empty without any."""
    if not spec.grid.judges:
        return ""
    models = _model_identities(spec)
    parts: list[Any] = []
    for name, judge in sorted(spec.grid.judges.items()):
        parts += [name, judge, spec.rubrics[name], models[judge.model]]
    return digest(*parts)


def cells(spec: GridSpec) -> Iterator[Cell]:
    """Every cell, in the order of their names; case ids within a way, repeats within a case.

    A key changes with model, endpoint, params, law, seed, deck, prompt, setting, fault, case,
    scorers or judges, and with nothing else: neither the name of the grid, nor its limits, nor what
    else is in it. A field that is at its default has no part in a key: a cell that was paid for keeps
    its own when a later version of the kit adds one.
    """
    grid = spec.grid
    models = _model_identities(spec)
    base = _base(spec, models)
    # A cell whose judge has changed is another cell, of the same turns.
    nobody = grid.model_copy(update={"scorers": (), "judges": {}})
    unscored = _base(replace(spec, grid=nobody), models)
    decks = {names: _deck_identity(deck) for names, deck in spec.decks.items()}
    faults = {name: digest(*map(str, effects)) for name, effects in spec.faults.items()}
    # In the order of their ids: the bytes of the results do not depend on that of the file.
    cases = sorted((case.id, index, digest(case)) for index, case in enumerate(spec.cases))
    ways: dict[tuple[str, str, str, str, str], str] = {}
    axes = (grid.models, grid.prompts, grid.settings, grid.patterns, grid.faults)
    for model, prompt, setting, pattern, fault in product(*map(sorted, axes)):
        parts = (
            models[model],
            decks[prompt, setting],
            pattern + _identity(spec, pattern),
            faults[fault],
        )
        ways[model, prompt, setting, pattern, fault] = "|".join(parts)
    identities = [system.identity for system in spec.systems.values()]
    for name in sorted(spec.systems):
        identity = spec.systems[name].identity
        # One system beside itself is two ways: each plays every case.
        if identities.count(identity) > 1:
            identity += name
        # Prompts, settings, patterns and faults of a deck have no part in a whole system.
        ways[name, "", "", "", ""] = f"system|{identity}"
    keeps_turns = spec.keeps_turns
    for way, way_identity in ways.items():
        for _, index, case in cases:
            for repeat in range(grid.repeats):
                sample = f"{way_identity}|{case}|{repeat}"
                key = _hash(f"{base}|{sample}")[:24]
                turn = _hash(f"{unscored}|{sample}")[:24]
                yield Cell(key, *way, index, repeat, turn if keeps_turns else "")


def _base(spec: GridSpec, models: Mapping[str, str]) -> str:
    """What all cells of a grid depend on; `models` are their identities."""
    grid = spec.grid
    base = digest(FORMAT, grid.seed, grid.sub_agents, grid.scorers)
    base += spec.own.identity("scorer", grid.scorers) + spec.own.identity("tools", ("",))
    base += spec.own.identity("guard", spec.deck.code.guards)
    base += spec.own.identity("agent", spec.deck.code.agents)
    if grid.sub_agents == "world":
        tools = spec.deck.tools
        base += code_digest(tools.references, tools.folder)
    base += judges_identity(spec)
    if grid.others is not None:
        base = digest(base, models[grid.others])
    return base


def in_play_order(spec: GridSpec, cells: Iterable[Cell]) -> list[Cell]:
    """Returns the cells sample by sample, each sample on all its ways before the next one begins.

    The grid's seed draws the order of the samples, and the order of the ways within each. Way by
    way, a run that a limit of dollars stops would have played the first way on everything and the
    others on next to nothing, and cases in the order of their file would be a biased part of it.
    """

    def position(cell: Cell) -> tuple[str, str]:
        sample = f"{spec.grid.seed}|{spec.cases[cell.case].id}|{cell.repeat}"
        return _hash(sample), _hash(f"{sample}|{'|'.join(cell.way)}")

    return sorted(cells, key=position)


def sample_of(cell: Cell) -> Sample:
    """Returns the sample that a cell is of."""
    return cell.case, cell.repeat


@dataclass(frozen=True)
class Halt:
    """What a run does not begin any more. It crosses to other processes."""

    everything: bool = False
    new_samples: bool = False
    """Samples that are begun are finished on every way, so that all ways keep the same cases."""
    models: frozenset[str] = frozenset()
    """Models that cannot be asked: their key is refused, or nothing is at their address."""

    def forbids(self, cell: Cell, begun: Iterable[Sample]) -> bool:
        """Says whether a cell must not begin; `begun` are the samples of the cells that did."""
        if self.everything or cell.model in self.models:
            return True
        return self.new_samples and sample_of(cell) not in begun


GO_ON = Halt()
"""Of a run that nothing stops."""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _identity(spec: GridSpec, pattern: str) -> str:
    """What a pattern is beside its name: its source where it is the grid's own, and what its messages cross."""
    identity = spec.own.identity("pattern", (pattern,))
    if pattern == A2A.name and not identity:
        return digest(spec.link or "loopback")
    return identity


def _deck_identity(deck: Deck) -> str:
    """A digest of everything in a deck that an outcome may depend on."""
    settings = deck.settings.model_dump(mode="json", exclude=NO_OUTCOME, exclude_defaults=True)
    parts: list[Any] = [settings]
    for card in deck.cards.values():
        parts.append(card.model_dump(mode="json", exclude_defaults=True))
    parts += deck.blocks.values()
    parts += deck.dangers.values()
    parts += deck.rubrics.values()
    parts += [sorted(deck.flags.items()), sorted(deck.tool_flags.items())]
    parts += [deck.tool_settings, deck.flag_settings, deck.environment_surface]
    return digest(*parts)


def _model_identities(spec: GridSpec) -> dict[str, str]:
    """Model -> a digest of what it is and where it is reached."""
    identities: dict[str, str] = {}
    for key, model in spec.every_model.items():
        parts: list[Any] = [
            model.model_dump(mode="json", exclude={"limits"}, exclude_defaults=True)
        ]
        if key in spec.endpoints:
            parts.append(spec.endpoints[key])
        identities[key] = digest(*parts) + spec.own.identity("model", (key,))
    return identities
