"""The grids that the page can start: their files, their folders, and a forecast of what each costs."""

from pathlib import Path

from kit.bench.grid.forecast import EXAMPLE, Forecast, announce, forecast, pace
from kit.bench.grid.grid_file import read_grid
from kit.core.value import Value
from kit.settings import HOME, own_project

GRIDS = HOME / "data" / "grids"
MOST_CELLS = 3_000
"""Most cells of a grid that the page starts; larger ones are for the command line."""
UNPRICED = 200
"""The same for a model that costs money and has no price in models.yaml."""


class Order(Value):
    """A grid that can be started."""

    name: str
    file: Path
    asks: Forecast
    kinds: tuple[str, ...]
    announcement: str
    """What it may ask of models that cost money, in the sentence of the command; empty where none does."""

    @property
    def paid(self) -> bool:
        """Whether its models may cost money."""
        return "measured" in self.kinds

    @property
    def too_large(self) -> bool:
        return self.asks.cells > (
            UNPRICED if self.paid and self.asks.dollars is None else MOST_CELLS
        )


def order(file: Path) -> Order:
    """Reads a grid's file. Raises DataError, one sentence, for one that cannot be played."""
    spec = read_grid(file)
    kinds = set(spec.kinds.values())
    if spec.grid.judges:
        kinds.add("measured")
    return Order(
        name=spec.grid.name,
        file=file,
        asks=forecast(spec, pace(EXAMPLE)),
        kinds=tuple(sorted(kinds)),
        announcement=announce(spec),
    )


def grid_files() -> dict[str, Path]:
    """Returns grid.yaml of the project worked in, and the files of data/grids by their stems."""
    files = {path.stem: path for path in sorted(GRIDS.glob("*.yaml"))}
    project = own_project()
    if project and (project / "grid.yaml").is_file():
        files = {f"{project.name}/grid.yaml": project / "grid.yaml", **files}
    return files


def about(path: Path) -> str:
    """Returns the comment at the top of a grid's file as one line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return " ".join(line.lstrip("# ") for line in lines if line.startswith("#"))
