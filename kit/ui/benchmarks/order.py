"""The grids that the page can start: their files, their folders, and a forecast of what each costs."""

import tempfile
from pathlib import Path
from typing import Any

import yaml

from kit.bench.grid.forecast import EXAMPLE, Forecast, forecast, pace
from kit.bench.grid.grid_file import GridSpec, beside, read_grid
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
    text: str
    """Its file, as it will be beside its results."""
    asks: Forecast
    kinds: tuple[str, ...]
    limit: float | None
    """Dollars at which no further cell is begun."""

    @property
    def paid(self) -> bool:
        """Whether its models may cost money."""
        return "measured" in self.kinds

    @property
    def too_large(self) -> bool:
        return self.asks.cells > (
            UNPRICED if self.paid and self.asks.dollars is None else MOST_CELLS
        )

    def file(self, folder: Path) -> Path:
        """Writes the grid's file into its folder. Raises OSError where that cannot be."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "grid.yaml"
        path.write_text(self.text, encoding="utf-8")
        return path


def order(text: str) -> Order:
    """Reads a grid's YAML text. Raises DataError, one sentence, for one that cannot be played."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "grid.yaml"
        path.write_text(text, encoding="utf-8")
        spec: GridSpec = read_grid(path)
    kinds = set(spec.kinds.values())
    if spec.grid.judges:
        kinds.add("measured")
    return Order(
        name=spec.grid.name,
        text=text,
        asks=forecast(spec, pace(EXAMPLE)),
        kinds=tuple(sorted(kinds)),
        limit=spec.grid.limits.dollars,
    )


def grid_files() -> dict[str, Path]:
    """Returns grid.yaml of the project worked in, and the files of data/grids by their stems."""
    files = {path.stem: path for path in sorted(GRIDS.glob("*.yaml"))}
    project = own_project()
    if project and (project / "grid.yaml").is_file():
        files = {f"{project.name}/grid.yaml": project / "grid.yaml", **files}
    return files


def text_of(path: Path) -> str:
    """Returns the text of a grid's file; what lies beside it is named by its whole path, for it is
    played from another folder.

    Raises DataError for a file that cannot be played.
    """
    if path.parent == GRIDS:
        return path.read_text(encoding="utf-8")
    grid = read_grid(path).grid
    raw: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    raw |= {"name": grid.name, "deck": str(beside(grid.deck, path))}
    raw["cases"] = [
        part.model_dump(exclude_unset=True) | {"file": str(beside(part.file, path))}
        for part in grid.cases
    ]
    if grid.cassette:
        raw["cassette"] = grid.cassette.model_dump()
    return yaml.safe_dump(raw, sort_keys=False)


def about(path: Path) -> str:
    """Returns the comment at the top of a grid's file as one line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return " ".join(line.lstrip("# ") for line in lines if line.startswith("#"))
