"""What a cell of a grid costs beside its turn: Python calls, the same on every machine, and CPU,
which other work disturbs."""

import statistics
import tempfile
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.call_count import count_calls
from kit.bench.grid.cell import Cell, cells
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.ledger import FinishedCell, Ledger
from kit.bench.grid.player import Opener, Player
from kit.bench.grid.run import LEDGER, write
from kit.bench.grid.workers import BATCH
from kit.core.context import OPERATOR, Session
from kit.core.errors import DataError
from kit.core.record import TurnRecord
from kit.runtime.clock import run_virtual
from kit.runtime.handle import Reply
from kit.runtime.turn import run_turn

ROUNDS = 5


@dataclass(frozen=True)
class CellCost:
    """One pattern's cells. The harness is all that is done to a cell beside its turn: truth,
    scores, line, ledger, files."""

    pattern: str
    cells: int
    turn_calls: float
    """Python and C calls a cell, as cProfile counts them."""
    turn_ms: float
    """CPU milliseconds a cell, median of the rounds."""
    harness_calls: float
    harness_ms: float

    def __str__(self) -> str:
        turn = f"turn {self.turn_calls:7,.0f} calls {self.turn_ms:6.2f} ms"
        return f"{self.pattern:20} {turn}, harness {self.harness_calls:4.0f} calls {self.harness_ms:5.2f} ms"


def cell_costs(
    spec: GridSpec, opener: Opener, take: int = 96, rounds: int = ROUNDS
) -> list[CellCost]:
    """The cost of each pattern on the grid's first model, prompt and setting, over `take` of its
    cells; blocks.

    Only cases of one turn without faults are taken. Raises DataError for a grid on the real clock,
    or without such a case.
    """
    if not spec.virtual:
        raise DataError(
            f"grid {spec.grid.name} runs on the real clock: the cost of a cell is counted in virtual time only"
        )
    costs: list[CellCost] = []
    for pattern in spec.grid.patterns:
        costs.append(run_virtual(_Sample(spec, pattern, take).cost(opener, rounds)))
    return costs


class _Sample:
    """Cells of one pattern, played once with their turns and then, for what is done beside them,
    over the turns played."""

    def __init__(self, spec: GridSpec, pattern: str, take: int):
        self._spec = spec
        self._pattern = pattern
        candidates: list[Cell] = []
        for cell in cells(spec):
            if cell.pattern == pattern and _plain(cell, spec):
                candidates.append(cell)
        self._cells = list(islice(candidates, 0, None, max(1, len(candidates) // take)))[:take]
        if not self._cells:
            raise DataError(
                f"grid {spec.grid.name} has no case of one turn without faults: nothing to count the cost of"
            )
        self._replies: dict[str, tuple[Reply, TurnRecord]] = {}

    async def cost(self, opener: Opener, rounds: int) -> CellCost:
        async def first(message: str, session: Session, *arguments: Any, **more: Any) -> Reply:
            began = time.process_time()
            reply = await run_turn(message, session, *arguments, **more)
            turns.append(time.process_time() - began)
            record = player.store.turn(reply.turn_id, OPERATOR)
            assert record is not None
            self._replies[session.id] = reply, record
            return reply

        async def again(message: str, session: Session, *arguments: Any, **more: Any) -> Reply:
            reply, record = self._replies[session.id]
            player.store.end_turn(record, (), ())
            return reply

        turns: list[float] = []
        player = Player(self._spec, opener, first)
        try:
            await self._play(player)
            turns.clear()
            whole = await count_calls(self._play(player)) / len(self._cells)
            turns.clear()
            for _ in range(rounds):
                await self._play(player)
            turn_ms = 1e3 * statistics.median(turns)
            player.run = again
            harness = await count_calls(self._play(player)) / len(self._cells)
            harness_ms: list[float] = []
            for _ in range(4 * rounds):
                harness_ms.append(await self._play(player))
        finally:
            await player.close()
        return CellCost(
            self._pattern,
            len(self._cells),
            whole - harness,
            turn_ms,
            harness,
            statistics.median(harness_ms),
        )

    async def _play(self, player: Player) -> float:
        """Plays the cells as a grid does, into a folder of their own; CPU milliseconds a cell."""
        with tempfile.TemporaryDirectory() as folder:
            ledger = Ledger(Path(folder) / LEDGER)
            batch = list[FinishedCell]()
            began = time.process_time()
            for cell in self._cells:
                batch.append(await player.cell(cell))
                if len(batch) == BATCH:
                    ledger.keep(batch)
                    batch.clear()
            ledger.keep(batch)
            write(Path(folder), self._spec, self._cells, ledger)
            cpu = time.process_time() - began
            ledger.close()
        return 1e3 * cpu / len(self._cells)


def _plain(cell: Cell, spec: GridSpec) -> bool:
    grid = spec.grid
    case = spec.cases[cell.case]
    first = (grid.models[0], next(iter(grid.prompts)), next(iter(grid.settings)), 0)
    alone = (
        len(case.turns) == 1 and not case.live and not case.faults and not spec.faults[cell.fault]
    )
    return alone and (cell.model, cell.prompt, cell.setting, cell.repeat) == first


def show_costs(spec: GridSpec, opener: Opener) -> int:
    """Prints what a cell costs, a line a pattern."""
    costs = cell_costs(spec, opener)
    print(f"CPU of a cell, simulated models, {costs[0].cells} cells a pattern:", *costs, sep="\n")
    return 0
