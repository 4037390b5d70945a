"""Runs every framework through every experiment and says how the kit compares: `make bench-peers`.

One process for each framework, experiment and round. The frameworks take turns, in each round
another one first, so that a busy minute hits all alike. What has been measured stays in RESULTS. A
run that was stopped goes on where it was, unless code or pins have changed since.
"""

import argparse
import datetime
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from experiment import EXPERIMENTS
from figure import save
from report import Row, bars, page, say_bars, summarise

HERE = Path(__file__).resolve().parent
HOME = HERE.parents[1]
RESULTS = HOME / ".kit" / "bench-peers.jsonl"
PAGE, FIGURE = HOME / "docs" / "peers.md", HOME / "docs" / "figures" / "peers.png"
OWN, PEERS = HOME / ".venv" / "bin" / "python", HOME / ".kit" / "peers" / "bin" / "python"
ADAPTERS = {
    "kit": OWN,
    "hand_loop": OWN,
    "agent_framework": PEERS,
    "openai_agents": PEERS,
    "pydantic_ai_agents": PEERS,
    "langchain_agents": PEERS,
    "google_adk": PEERS,
    "strands_agents": PEERS,
}
"""Module of `adapters` -> the Python that has its packages."""
ROUNDS = 5
EXACT = {"calls", "memory"}
"""Experiments that come out the same each time, and are run once."""
SECONDS = 300
"""After which a process counts as failed."""
VARIABLES = {
    name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")
}
"""All that a process sees of the environment: no key and no address of a collector is among it."""


class Job(NamedTuple):
    """One process."""

    adapter: str
    experiment: str
    round: int


def plan(adapters: Sequence[str], rounds: int) -> Iterator[Job]:
    """All processes, in their order."""
    for number in range(rounds):
        first = number % len(adapters)
        for experiment in EXPERIMENTS:
            if number == 0 or experiment not in EXACT:
                yield from (
                    Job(adapter, experiment, number)
                    for adapter in (*adapters[first:], *adapters[:first])
                )


def run_job(job: Job) -> Row:
    """What a process found out, or under `error` why it did not."""
    command = [
        ADAPTERS[job.adapter],
        "-W",
        "ignore",
        HERE / "experiment.py",
        job.adapter,
        job.experiment,
    ]
    try:
        done = subprocess.run(
            command,
            env=VARIABLES | {"PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"took more than {SECONDS} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["no word of why"])[-1][:300]}
    return json.loads(done.stdout.splitlines()[-1])


def digest() -> str:
    """Names the code and the pins that a figure depends on; how it is shown does not change it."""
    code = [
        *(HOME / "kit").rglob("*.py"),
        *(HERE / "adapters").glob("*.py"),
        HERE / "workload.py",
        HERE / "experiment.py",
    ]
    pins = [HERE / "requirements.txt", HOME / "requirements.txt"]
    return hashlib.sha256(
        b"".join(path.read_bytes() for path in (*sorted(code), *pins))
    ).hexdigest()[:12]


def stored_rows(source: str) -> dict[Job, Row]:
    """What was measured of this code; what failed is left out, and so tried again."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    rows: list[Row] = [json.loads(line) for line in lines]
    return {
        Job(row["adapter"], row["experiment"], row["round"]): row
        for row in rows
        if row["source"] == source and "error" not in row
    }


def measure(jobs: Sequence[Job], fresh: bool) -> list[Row]:
    """Runs what is missing, and writes each result as soon as it is there."""
    source = digest()
    rows = {} if fresh else stored_rows(source)
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows.values())
        for place, job in enumerate(jobs, 1):
            if job in rows:
                continue
            print(
                f"{place:3} of {len(jobs)}  round {job.round + 1}  {job.experiment:8} {job.adapter}",
                flush=True,
            )
            date, load = (
                datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                os.getloadavg()[0],
            )
            rows[job] = {
                **job._asdict(),
                "source": source,
                "date": date,
                "load": load,
                **run_job(job),
            }
            file.write(json.dumps(rows[job]) + "\n")
            file.flush()
    return [rows[job] for job in jobs]


def main() -> int:
    parser = argparse.ArgumentParser(
        description="The same turn in the kit, a hand-written loop and six other frameworks."
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=ROUNDS,
        help=f"{ROUNDS}, and no fewer where the page is to be written",
    )
    parser.add_argument(
        "--only", default=",".join(ADAPTERS), help="adapters, with commas between them"
    )
    parser.add_argument("--fresh", action="store_true", help="forgets what has been measured")
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := set(names) - set(ADAPTERS):
        parser.error(f"no adapter {', '.join(sorted(unknown))}; there are {', '.join(ADAPTERS)}")
    rows = measure(list(plan(names, options.rounds)), options.fresh)
    summary = summarise(rows)
    text = f"{page(summary)}\n\n### What the kit is held to\n\n{say_bars(bars(summary))}"
    print(f"\n{text}")
    if options.rounds < ROUNDS or set(names) != set(ADAPTERS):
        print(
            f"\n{PAGE.relative_to(HOME)} stays as it is: it takes every framework and {ROUNDS} rounds."
        )
        return 0
    head, mark, _ = PAGE.read_text().partition("<!-- make bench-peers writes what follows -->\n")
    PAGE.write_text(f"{head}{mark}\n{text}\n")
    save(summary, FIGURE)
    print(f"\nwritten: {PAGE.relative_to(HOME)}, {FIGURE.relative_to(HOME)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
