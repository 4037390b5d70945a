"""A grid that somebody puts together on the page, or one of data/grids: its file, its folder, and a
forecast of its cost."""

import hashlib
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
CASE_SETS = {
    "mixed": "two to five requests in one message",
    "single": "one request each, of every vertical",
    "switches": "dialogues that switch from one vertical to another",
    "fastpath": "small talk, alone and beside a request",
    "partial": "several requests, of which a part fails",
    "injection": "attempts to talk an agent out of its rules",
    "references": "questions that lean on what another agent said",
    "long": "long dialogues",
    "routing_parity": "short scenarios of routing: pictures, short replies, greetings, switches",
}
"""Stem in data/cases -> what is in it."""
OWN_CHOICE = "cases"
"""Stem of the case file of a project, the only one that speaks of its agents."""


def case_sets(deck: Path) -> dict[str, str]:
    """Returns the case files for a deck: that of the project worked in for its own, else the shipped ones."""
    project = own_project()
    if project and deck == project / "deck" and _case_file(OWN_CHOICE).is_file():
        return {OWN_CHOICE: "of this project"}
    return CASE_SETS


def _case_file(cases: str) -> Path:
    if cases == OWN_CHOICE:
        folder = own_project()
    else:
        folder = None
    return (folder or HOME / "data" / "cases") / f"{cases}.jsonl"


class Draft(Value):
    """A grid as somebody chose it on the page."""

    models: tuple[str, ...]
    patterns: tuple[str, ...]
    cases: str
    """A key of `case_sets`."""
    take: int
    """How many cases of it, spread over the file."""
    dollars: float | None = None
    deck: str = ""
    """Folder of the deck; empty is that of every shipped grid."""

    @property
    def name(self) -> str:
        """The same choice has the same name, so that its grid is resumed where it was stopped."""
        choice = self.model_dump_json(exclude={"dollars"})
        return f"{self.cases}-{self.take}-{hashlib.sha256(choice.encode()).hexdigest()[:6]}"

    def text(self) -> str:
        """Returns the text of the grid's YAML file."""
        if self.cases == OWN_CHOICE:
            file = str(_case_file(OWN_CHOICE))
        else:
            file = f"data/cases/{self.cases}.jsonl"
        every = max(1, count_cases(self.cases) // self.take)
        grid: dict[str, Any] = {
            "name": self.name,
            "models": list(self.models),
            "patterns": list(self.patterns),
            "settings": {"wide": {"cap": 8}},
            "cases": [{"file": file, "take": self.take, "every": every}],
            "baseline": self._baseline(),
            "verdicts": [
                "exact",
                *(["mixed_exact"] if self.cases == "mixed" else []),
                "seconds",
                "input_tokens",
            ],
        }
        if self.deck:
            grid["deck"] = self.deck
        if self.dollars is not None:
            grid["limits"] = {"dollars": self.dollars}
        return yaml.safe_dump(grid, sort_keys=False)

    def _baseline(self) -> dict[str, str]:
        if len(self.patterns) > 1:
            return {"pattern": "mediated" if "mediated" in self.patterns else self.patterns[0]}
        if len(self.models) > 1:
            return {"model": self.models[0]}
        return {}


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


def count_cases(cases: str) -> int:
    """Returns how many cases a set has."""
    text = _case_file(cases).read_text(encoding="utf-8")
    total = 0
    for line in text.splitlines():
        if line.strip():
            total += 1
    return total


def order(text: str) -> Order:
    """Reads a grid's YAML text. Raises DataError, one sentence, for one that cannot be played."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "grid.yaml"
        path.write_text(text, encoding="utf-8")
        spec: GridSpec = read_grid(path)
    if spec.grid.judges:
        judged = ("measured",)
    else:
        judged = ()
    kinds = tuple(sorted({*spec.kinds.values(), *judged}))
    return Order(
        name=spec.grid.name,
        text=text,
        asks=forecast(spec, pace(EXAMPLE)),
        kinds=kinds,
        limit=spec.grid.limits.dollars,
    )


def grid_files() -> dict[str, Path]:
    """Returns grid.yaml of the project worked in, and the files of data/grids by their stems."""
    project = own_project()
    if project and (project / "grid.yaml").is_file():
        project_grids = {f"{project.name}/grid.yaml": project / "grid.yaml"}
    else:
        project_grids = {}
    return project_grids | {path.stem: path for path in sorted(GRIDS.glob("*.yaml"))}


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
