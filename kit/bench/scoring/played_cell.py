"""What a cell keeps of its turns beside their scores, so that a turn that was paid for can be scored again."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from kit.bench.case import Case
from kit.bench.scoring.observation import Observation
from kit.core.value import Value


class PlayedTurn(Value):
    """One turn of a cell: what scorers may know of it, and what its line says beside the scores."""

    observation: Observation
    fields: dict[str, Any]


class PlayedCell(Value):
    """The turns of a cell. Who judges them belongs to the key of the cell, and not to these."""

    cell: str
    """The key that they were played under: the ids of their traces begin with it."""
    turns: tuple[PlayedTurn, ...]
    void: str
    """The faults of the grid that never happened in them."""
    dollars: float | None
    times: list[dict[str, float | None]]
    """Of each turn, in seconds of a real clock; none where time is virtual."""
    error: str = ""
    """Of a whole system that answered none of them: what it failed by."""

    @classmethod
    def from_json(cls, text: str) -> "PlayedCell | None":
        """Returns the turns of a stored text; None where another version of the kit wrote it."""
        try:
            return cls.model_validate_json(text)
        except ValidationError:
            return None


def turn_fields(
    case: Case,
    observation: Observation,
    counts: Mapping[str, float | None],
    *,
    failed: Iterable[str] = (),
    failsafe: str | None = None,
    truncated: bool = False,
) -> dict[str, Any]:
    """What the line of any turn says beside its names and its scores; of `counts` what is not told is None."""
    fields: dict[str, Any] = {
        "turn": observation.turn,
        "domain": case.domain,
        "parts": len(case.turns[observation.turn].expected),
        "status": observation.status,
    }
    # The bytes of a row depend on this order, and what is usual stands in no row.
    if truncated:
        fields["truncated"] = True
    if not observation.routed:
        fields["routed"] = False
    fields["called"] = sorted(observation.called)
    fields["failed"] = sorted(failed)
    fields["failsafe"] = failsafe
    return {**fields, **counts}


def known_sum(dollars: Iterable[float | None]) -> float | None:
    """None where no price is known."""
    costs = [cost for cost in dollars if cost is not None]
    if costs:
        return sum(costs)
    return None
