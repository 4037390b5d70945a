"""What a cell keeps of its turns beside their scores, so that a turn that was paid for can be scored again."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kit.bench.scoring.observation import Observation


@dataclass(frozen=True)
class PlayedTurn:
    """One turn of a cell: what scorers may know of it, and what its line says beside the scores."""

    observation: Observation
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class PlayedCell:
    """The turns of a cell. Who judges them belongs to the key of the cell, and not to these."""

    cell: str
    """The key that they were played under: the ids of their traces begin with it."""
    turns: tuple[PlayedTurn, ...]
    void: str
    """The faults of the grid that never happened in them."""
    dollars: float | None
    timing: Mapping[str, Any]

    def to_json(self) -> str:
        """Returns a text that `from_json` reads."""
        turns = [
            {"observation": turn.observation.model_dump(mode="json"), "fields": turn.fields}
            for turn in self.turns
        ]
        return json.dumps(
            {
                "cell": self.cell,
                "turns": turns,
                "void": self.void,
                "dollars": self.dollars,
                "timing": self.timing,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "PlayedCell | None":
        """Returns the turns of a stored text; None where another version of the kit wrote it."""
        try:
            stored: dict[str, Any] = json.loads(text)
            turns = [
                PlayedTurn(Observation.model_validate(turn["observation"]), turn["fields"])
                for turn in stored["turns"]
            ]
            return cls(
                cell=stored["cell"],
                turns=tuple(turns),
                void=stored["void"],
                dollars=stored["dollars"],
                timing=stored["timing"],
            )
        except (ValueError, KeyError):  # a ValidationError is a ValueError
            return None
