"""Which cell of a grid is played next, and which are not begun any more once a run must stop."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from kit.bench.grid.cell import Cell
from kit.bench.grid.grid_file import GridSpec

Sample = tuple[int, int]
"""A case and its repeat: what ways are paired by."""


def in_play_order(spec: GridSpec, cells: Iterable[Cell]) -> list[Cell]:
    """Returns the cells sample by sample, each sample on all its ways before the next one begins.

    The grid's seed draws the order of the samples, and the order of the ways within each. Way by
    way, a run that a limit of dollars stops would have played the first way on everything and the
    others on next to nothing, and cases in the order of their file would be a biased part of it.
    """

    def position(cell: Cell) -> tuple[str, str]:
        sample = f"{spec.grid.seed}|{spec.cases[cell.case].id}|{cell.repeat}"
        way = f"{cell.model}|{cell.prompt}|{cell.setting}|{cell.pattern}|{cell.fault}"
        return _draw(sample), _draw(f"{sample}|{way}")

    return sorted(cells, key=position)


def by_sample(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Groups cells that stand in play order: one list for each sample."""
    groups: dict[Sample, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(sample_of(cell), []).append(cell)
    return list(groups.values())


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


def _draw(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
