"""A grid that somebody puts together on the page: models, patterns and a set of cases, as the text of its file."""

import hashlib
from pathlib import Path
from typing import Any

import yaml

from kit.core.value import Value
from kit.settings import HOME, own_project

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
    project = own_project()
    if cases == OWN_CHOICE and project:
        return project / "cases.jsonl"
    return HOME / "data" / "cases" / f"{cases}.jsonl"


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
        file = f"data/cases/{self.cases}.jsonl"
        if self.cases == OWN_CHOICE:
            file = str(_case_file(OWN_CHOICE))
        verdicts = ["exact", "seconds", "input_tokens"]
        if self.cases == "mixed":
            verdicts.insert(1, "mixed_exact")
        every = max(1, count_cases(self.cases) // self.take)
        grid: dict[str, Any] = {
            "name": self.name,
            "models": list(self.models),
            "patterns": list(self.patterns),
            "settings": {"wide": {"cap": 8}},
            "cases": [{"file": file, "take": self.take, "every": every}],
            "baseline": self._baseline(),
            "verdicts": verdicts,
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


def count_cases(cases: str) -> int:
    """Returns how many cases a set has."""
    text = _case_file(cases).read_text(encoding="utf-8")
    total = 0
    for line in text.splitlines():
        if line.strip():
            total += 1
    return total
