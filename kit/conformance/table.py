"""The stored result: what each system came to in each play."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kit.conformance.scenario import Composer

Mark = Literal["pass", "fail", "void", "not offered"]


@dataclass(frozen=True, slots=True)
class Table:
    """The stored result of a run: a mark for each system, scenario, composer and configuration."""

    content: Mapping[str, Any]

    @staticmethod
    def read(path: Path) -> "Table":
        return Table(json.loads(path.read_text()))

    @property
    def systems(self) -> list[dict[str, Any]]:
        return self.content["systems"]

    def marks(self, system: Mapping[str, Any]) -> dict[tuple[str, Composer, bool], Mark]:
        """(scenario, composer, whether it is the best configuration) -> mark."""
        marks: dict[tuple[str, Composer, bool], Mark] = {}
        for cell in system["cells"]:
            mark = cell["verdict"]
            if mark == "fail" and cell["scenario"] in system["not_offered"]:
                mark = "not offered"
            marks[cell["scenario"], cell["composer"], cell["best"]] = mark
        return marks

    def score(self, system: Mapping[str, Any], best: bool) -> tuple[int, int]:
        """How many plays of a configuration passed, and how many there were."""
        marks = [mark for key, mark in self.marks(system).items() if key[2] == best]
        return marks.count("pass"), len(marks)
