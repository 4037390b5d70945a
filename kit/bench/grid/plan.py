"""What a grid lays down about its verdicts before anything of it is seen: how many plays, which
difference is too small to matter, and which cases belong together."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kit.bench.case import Case
from kit.bench.grid.grid_file import GridSpec
from kit.bench.grid.verdict import Margin
from kit.core.display.count import many
from kit.core.limits import read_json
from kit.core.value import Value


class Plan(Value):
    """Kept in provenance.json from a grid's first run on, so that a sample that grows is known to."""

    planned: int | None = None
    """Plays of each way, that is cases times repeats; None where nobody knows how often one looked."""
    margin: Margin | None = None
    clusters: dict[str, str] = {}
    """Case -> the cluster it belongs to, of cases that are not alone in theirs."""
    equal: tuple[str, ...] = ()
    """The first case of each set of cases that ask the same, in the same words."""

    def __str__(self) -> str:
        if self.planned is None:
            return "No number of plays was planned: the verdicts hold at any look."
        plays = many(self.planned, "play")
        return f"Planned: {plays} of each way. At any other number the verdicts are those that hold at any look."

    @property
    def warning(self) -> str:
        """Says which cases ask the same; empty where none do."""
        if not self.equal:
            return ""
        return (
            f"{many(len(self.clusters), 'case')} ask what another asks, in the same words (such as "
            f"{self.equal[0]!r}): equal ones count as one cluster."
        )


def plan_of(spec: GridSpec, folder: Path) -> Plan:
    """The plan of a grid whose results are in this folder. What was planned before its first run stays planned."""
    recorded = _recorded(folder)
    if recorded is None:
        return first_plan(spec)
    planned = recorded.get("plan", {}).get("planned")
    return first_plan(spec).model_copy(update={"planned": planned})


def first_plan(spec: GridSpec) -> Plan:
    """The plan of a grid of which nothing was seen yet."""
    grid = spec.grid
    planned = (grid.planned or len(spec.cases)) * grid.repeats
    if grid.cluster is not None:
        clusters = _by_field(spec.cases, grid.cluster)
        return Plan(planned=planned, margin=grid.margin, clusters=clusters)
    clusters = equal_messages(spec.cases)
    equal = tuple(sorted(set(clusters.values())))
    return Plan(planned=planned, margin=grid.margin, clusters=clusters, equal=equal)


def _recorded(folder: Path) -> Mapping[str, Any] | None:
    """What the folder's provenance.json says of the grid; None where there is none yet."""
    path = folder / "provenance.json"
    try:
        return read_json(path.read_text(encoding="utf-8")).get("grid", {})
    except (OSError, ValueError, AttributeError):
        return None


def _by_field(cases: Sequence[Case], field: str) -> dict[str, str]:
    """Cases of one value of a field; one without any is alone."""
    groups: dict[str, list[str]] = defaultdict(list)
    for case in cases:
        groups[str(getattr(case, field)) or case.id].append(case.id)
    return {case: name for name, members in groups.items() if len(members) > 1 for case in members}


def equal_messages(cases: Sequence[Case]) -> dict[str, str]:
    """Cases that ask the same in the same words; each cluster has the name of its first case."""
    groups: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for case in cases:
        words = tuple(" ".join(ask.user.casefold().split()) for ask in case.turns)
        groups[words, case.principal.tenant_id, case.principal.user_id, case.faults].append(case.id)
    return {case: group[0] for group in groups.values() if len(group) > 1 for case in group}
