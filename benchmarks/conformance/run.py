"""Plays every system through every scenario and writes docs/conformance.md: `make conformance`."""

import argparse
import datetime
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.conformance.figure import figure
from benchmarks.conformance.page import differences, page
from kit.conformance.play import Result, play_system
from kit.conformance.scenario import BY_ID
from kit.conformance.table import Table

HERE = Path(__file__).resolve().parent
HOME = HERE.parents[1]
RESULT = HOME / "data" / "results" / "reference" / "conformance.json"
PAGE = HOME / "docs" / "conformance.md"
FIGURE = HOME / "docs" / "figures" / "conformance.svg"
MARK = "<!-- make conformance writes what follows -->\n"
OWN = Path(sys.executable)
PEERS = HOME / ".kit" / "conformance" / "bin" / "python"
SYSTEMS = {
    "kit": ("subagent_kit", OWN),
    "langgraph": ("langchain_agents", PEERS),
    "deepagents": ("deep_agents", PEERS),
    "openai": ("openai_agents", PEERS),
    "pydantic": ("pydantic_agents", PEERS),
    "adk": ("google_adk", PEERS),
    "microsoft": ("ms_agent_framework", PEERS),
    "strands": ("strands_agents", PEERS),
    "smolagents": ("smol_agents", PEERS),
    "gather": ("gather", OWN),
}
"""Name on the command line -> the adapter, and the Python that has its packages."""
AT_ONCE = 2
"""Systems that are played at the same time."""


def play(name: str, scenarios: Sequence[str]) -> Result:
    """Plays one system and says so."""
    adapter, python = SYSTEMS[name]
    reference = f"{HERE / 'adapters' / adapter}.py:system"
    result = play_system(reference, scenarios, python=str(python))
    passes = [cell for cell in result.cells if cell.judgement.verdict == "pass"]
    print(f"{name:20} {len(passes)} of {len(result.cells)} plays pass", flush=True)
    return result


def play_all(names: Sequence[str], scenarios: Sequence[str]) -> dict[str, Any]:
    """The result of a run, as it is stored."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        results = list(threads.map(partial(play, scenarios=scenarios), names))
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"date": today, "systems": [result.as_json() for result in results]}


def in_lines(content: dict[str, Any]) -> str:
    """The result as JSON with a line for each play, so that a change of one is one line of a diff."""
    text = json.dumps(content, ensure_ascii=False)
    return text.replace('{"scenario"', '\n{"scenario"').replace('{"name"', '\n{"name"') + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="The contract of parallel failure, as a table.")
    parser.add_argument("--only", default=",".join(SYSTEMS), help="systems, with commas between")
    parser.add_argument("--scenarios", default=",".join(BY_ID), help="with commas between them")
    parser.add_argument(
        "--again", action="store_true", help="compares with the stored result, and stores nothing"
    )
    options = parser.parse_args()
    names = options.only.split(",")
    scenarios = options.scenarios.split(",")
    for unknown in set(names) - set(SYSTEMS):
        parser.error(f"no system {unknown}; there are {', '.join(SYSTEMS)}")
    for unknown in set(scenarios) - set(BY_ID):
        parser.error(f"no scenario {unknown}; there are {', '.join(BY_ID)}")
    content = play_all(names, scenarios)
    table = Table(content)
    if options.again:
        lines = differences(Table.read(RESULT), table)
        print("\n".join(lines) or "every cell is as it was stored")
        return int(bool(lines))
    if names != list(SYSTEMS) or scenarios != list(BY_ID):
        print(f"\n{page(table)}\n\n{PAGE.relative_to(HOME)} stays as it is: it takes everything.")
        return 0
    RESULT.write_text(in_lines(content))
    head, _, _ = PAGE.read_text().partition(MARK)
    PAGE.write_text(f"{head}{MARK}\n{page(table)}\n")
    FIGURE.write_text(figure(table))
    print(
        f"\nwritten: {RESULT.relative_to(HOME)}, {PAGE.relative_to(HOME)}, {FIGURE.relative_to(HOME)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
