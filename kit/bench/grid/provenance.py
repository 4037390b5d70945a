"""What a run was made of: revision, versions, seeds; and what a grid lays down about its verdicts
before anything of it is seen."""

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from kit.bench import scoring
from kit.bench.case import Case
from kit.bench.grid.cell import judges_identity
from kit.bench.grid.grid_file import GridSpec
from kit.bench.identity import digest
from kit.bench.statistics.verdict import Margin
from kit.compose.revision import RevisionError, git
from kit.core.display.count import many
from kit.core.display.distribution import VERSION
from kit.core.limits import read_json
from kit.core.value import Value
from kit.home import HOME, IS_CHECKOUT

RULES = Path(scoring.__file__).parent
"""Holds the source of the kit's own scorers."""
PACKAGES = ("langchain-core", "langchain-openai", "pydantic", "numpy", "scipy")


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
    grid = spec.grid
    planned: int | None = (grid.planned or len(spec.cases)) * grid.repeats
    try:
        recorded = read_json((folder / "provenance.json").read_text(encoding="utf-8"))
        # A file that grew after its first run is past its plan.
        planned = recorded.get("grid", {}).get("plan", {}).get("planned")
    except (OSError, ValueError, AttributeError):
        # Nothing of the grid was seen yet.
        pass
    plan = Plan(planned=planned, margin=grid.margin)
    if grid.cluster is not None:
        return plan.replace(clusters=_by_field(spec.cases, grid.cluster))
    clusters = equal_messages(spec.cases)
    return plan.replace(clusters=clusters, equal=tuple(sorted(set(clusters.values()))))


def _by_field(cases: Sequence[Case], field: str) -> dict[str, str]:
    """Cases of one value of a field; one without any is alone."""
    groups: dict[object, list[str]] = {}
    for case in cases:
        groups.setdefault(str(getattr(case, field)) or case.id, []).append(case.id)
    return {case: str(name) for name, case in _members(groups)}


def equal_messages(cases: Sequence[Case]) -> dict[str, str]:
    """Cases that ask the same in the same words; each cluster has the name of its first case."""
    groups: dict[object, list[str]] = {}
    # Few calls a case: what a grid adds to a turn is gated.
    for case in cases:
        message = (
            *[ask.user.casefold() for ask in case.turns],
            case.principal.tenant_id,
            case.principal.user_id,
            case.faults,
        )
        if message in groups:
            groups[message].append(case.id)
        else:
            groups[message] = [case.id]
    return {case: groups[message][0] for message, case in _members(groups)}


def _members(groups: Mapping[object, Sequence[str]]) -> Iterator[tuple[object, str]]:
    """The cases that are not alone in their group, each with its group."""
    for group, cases in groups.items():
        if len(cases) > 1:
            for case in cases:
                yield group, case


def provenance(spec: GridSpec) -> dict[str, object]:
    """The day, git revision (and whether files differ from it), versions, seed, and names for the
    inputs; without the time of day."""
    rules = [path.read_text(encoding="utf-8") for path in sorted(RULES.glob("*.py"))]
    own_rules = spec.own.identity("scorer", spec.grid.scorers)
    inputs = {
        "grid": digest(spec.grid),
        "cases": digest(*spec.cases),
        "judges": digest(spec.grid.scorers, own_rules, judges_identity(spec), *rules),
        "deck": digest(*spec.deck.cards.values(), *spec.deck.blocks.values()),
    }
    models: dict[str, Any] = {}
    for key, model in spec.every_model.items():
        models[key] = json.loads(model.model_dump_json(exclude_defaults=True))
    systems: dict[str, Any] = {}
    for name, system in spec.systems.items():
        systems[name] = {"source": system.words, "digest": system.identity}
    made_of: dict[str, object] = {
        "grid": spec.grid.name,
        "date": datetime.now(UTC).date().isoformat(),
        "kinds": spec.kinds,
        "clock": "virtual" if spec.virtual else "real",
        "sub_agents": spec.grid.sub_agents,
        "seed": spec.grid.seed,
        "revision": revision(),
        "inputs": inputs,
        "models": models,
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
    }
    if systems:
        made_of["systems"] = systems
    return made_of


def revision() -> str:
    """The checkout's commit; "+" marks files that differ from it, "unknown" a copy without history.
    Installed: the version."""
    if not IS_CHECKOUT:
        return VERSION
    try:
        commit = git(HOME, "rev-parse", "HEAD").decode().strip()
        changes = git(HOME, "status", "--porcelain", "--untracked-files=no")
    except RevisionError:
        return "unknown"
    return commit + ("+" if changes else "")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
