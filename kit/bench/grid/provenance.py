"""What a run was made of: revision, versions, seeds."""

import json
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kit.bench import scoring
from kit.bench.grid.cell import judges_identity
from kit.bench.grid.grid_file import GridSpec, digest
from kit.core.display.distribution import VERSION
from kit.home import HOME, IS_CHECKOUT

PACKAGES = ("langchain-core", "langchain-openai", "pydantic", "numpy", "scipy", "statsmodels")


def provenance(spec: GridSpec) -> dict[str, object]:
    """Git revision (and whether files differ from it), versions, seed, and names for the inputs;
    without the time of day."""
    return {
        "grid": spec.grid.name,
        "kinds": spec.kinds,
        "clock": "virtual" if spec.virtual else "real",
        "seed": spec.grid.seed,
        "revision": revision(),
        "inputs": {
            "grid": digest(spec.grid),
            "cases": digest(*spec.cases),
            "judges": digest(
                spec.grid.scorers,
                spec.own.identity("scorer", spec.grid.scorers),
                judges_identity(spec),
                *_rules(),
            ),
            "deck": digest(*spec.deck.cards.values(), *spec.deck.blocks.values()),
        },
        "models": {
            key: json.loads(model.model_dump_json(exclude_defaults=True))
            for key, model in spec.every_model.items()
        },
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def _rules() -> list[str]:
    """The source of the kit's own scorers."""
    return [
        path.read_text(encoding="utf-8")
        for path in sorted(Path(scoring.__file__).parent.glob("*.py"))
    ]


def revision() -> str:
    """The checkout's commit; "+" marks files that differ from it, "unknown" a copy without history.
    Installed: the version."""
    if not IS_CHECKOUT:
        return VERSION
    try:
        commit, changes = (
            subprocess.run(
                ["git", "-C", str(HOME), *words],
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            ).stdout.strip()
            for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return commit + ("+" if changes else "")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
