"""Which requirement is proven by which test: docs/requirements.md against the tests marked
`@pytest.mark.req("ID")`.

`pytest -p tests.matrix` notes how every marked test ended in .kit/requirements.json; `python -m
tests.matrix` prints the rows and says no (exit 1) where a done row is not proven, a mark names no
row, or fewer rows are proven than the floor. The tests are run again only when something changed
since that note was made.
"""

import fcntl
import json
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

DOCUMENT = Path("docs/requirements.md")
NOTE = Path(".kit/requirements.json")
SITE = Path("docs/site")
SOURCES = (
    "kit",
    "tests",
    "cards",
    "data",
    "docs",
    "notebooks",
    "app.py",
    "pyproject.toml",
    "requirements.txt",
    "README.md",
)
SUITE = (sys.executable, "-m", "pytest", "-q", "-p", "tests.matrix", "--ignore=tests/browser")

STAGES = ("opensearch", "installed", "pages")
"""Marks of tests that have a stage of their own, after that of the others; two may end at the same time."""
Endings = dict[str, dict[str, str]]
"""Requirement id -> test -> passed, failed or skipped."""


class Row(NamedTuple):
    id: str
    state: str


class Table(NamedTuple):
    rows: tuple[Row, ...]
    floor: int


class Verdict(NamedTuple):
    lines: tuple[str, ...]
    faults: tuple[str, ...]


def read_table(text: str) -> Table:
    """The rows and the floor of docs/requirements.md; ValueError says which line cannot be read so."""
    rows: dict[str, Row] = {}
    for line in text.splitlines():
        if not line.startswith("| ") or line.startswith("| id "):
            continue
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if len(cells) != 4 or cells[-1] not in ("planned", "done") or cells[0] in rows:
            raise ValueError(
                f"{DOCUMENT}: a row is `| id | promise | where | planned or done |`, each id once, not: {line}"
            )
        rows[cells[0]] = Row(cells[0], cells[-1])
    floor = re.search(r"^The floor is \*\*(\d+)\*\*", text, re.MULTILINE)
    if floor is None:
        raise ValueError(f"{DOCUMENT}: no line says 'The floor is **N** proven rows'")
    return Table(tuple(rows.values()), int(floor[1]))


def judge(table: Table, endings: Endings) -> Verdict:
    """Sets rows against tests. A row is proven when at least one test carries it and every test
    that does has passed."""
    words = {row.id: _word(endings.get(row.id, {})) for row in table.rows}
    width = max(map(len, words), default=0)
    lines = [
        f"{id:<{width}}  {word:<7}  {_names(endings.get(id, {}))}".rstrip()
        for id, word in words.items()
    ]
    proven = sum(word == "proven" for word in words.values())
    faults = [
        f"{id} is called done and is {words[id]}"
        for id, state in table.rows
        if state == "done" and words[id] != "proven"
    ]
    faults += [
        f"{id} is no row of {DOCUMENT}: {_names(endings[id])}"
        for id in sorted(set(endings) - set(words))
    ]
    if proven < table.floor:
        faults.append(f"{proven} rows are proven, the floor is {table.floor}")
    return Verdict((*lines, f"rows {len(words)}, proven {proven}"), tuple(faults))


def _word(tests: dict[str, str]) -> str:
    if "failed" in tests.values():
        return "failed"
    return "proven" if tests and set(tests.values()) == {"passed"} else "missing"


def _names(tests: dict[str, str]) -> str:
    counted = Counter(
        (test.partition("[")[0].removeprefix("tests/"), ending) for test, ending in tests.items()
    )
    return ", ".join(
        name + (f" x{count}" if count > 1 else "") + (f" ({ending})" if ending != "passed" else "")
        for (name, ending), count in counted.items()
    )


@dataclass(eq=False)  # pytest keeps its plugins in a set
class Register:
    """Notes, during one pytest run, how each marked test ended, in whichever process it ran."""

    worker: bool = False
    """Whether this is one of several processes, whose reports another one gathers."""
    adds: bool = False
    """Whether it adds to what the run before has noted of the same sources."""
    begun: float = field(default_factory=time.time)
    endings: Endings = field(default_factory=lambda: defaultdict(dict))

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            item.user_properties += [
                ("req", id) for mark in item.iter_markers("req") for id in mark.args
            ]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        ending = "skipped" if hasattr(report, "wasxfail") else report.outcome
        for id in (str(value) for name, value in report.user_properties if name == "req"):
            known = self.endings[id].get(report.nodeid)
            self.endings[id][report.nodeid] = "failed" if "failed" in (known, ending) else ending

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if self.worker:
            return
        NOTE.parent.mkdir(exist_ok=True)
        # Another stage that adds may end at the same time.
        with NOTE.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            earlier = read_endings() if self.adds else None
            if self.adds and earlier is None:
                # Noted alone, these few would count as all that there are.
                return
            if earlier is not None:
                self.begun = json.loads(NOTE.read_text())["begun"]
                for id, tests in earlier.items():
                    self.endings[id] = tests | self.endings[id]
            NOTE.unlink(missing_ok=True)
            if exitstatus in (
                pytest.ExitCode.OK,
                pytest.ExitCode.TESTS_FAILED,
                pytest.ExitCode.NO_TESTS_COLLECTED,
            ):
                NOTE.write_text(
                    json.dumps({"begun": self.begun, "endings": self.endings}, indent=1)
                )


def pytest_configure(config: pytest.Config) -> None:
    """Makes this module a plugin: `pytest -p tests.matrix`."""
    register = Register(hasattr(config, "workerinput"), config.option.markexpr in STAGES)
    config.pluginmanager.register(register, "requirements")


def read_endings() -> Endings | None:
    """What the last whole run noted, unless a source is younger than its beginning."""
    if not NOTE.exists():
        return None
    note = json.loads(NOTE.read_text())
    return (
        note["endings"]
        if all(path.stat().st_mtime < note["begun"] for path in _sources())
        else None
    )


def run_suite() -> Endings | None:
    """Runs the tests and returns what was noted; None when the run did not come to its end."""
    NOTE.unlink(missing_ok=True)
    subprocess.run(SUITE, check=False)
    return json.loads(NOTE.read_text())["endings"] if NOTE.exists() else None


def _sources() -> Iterator[Path]:
    for name in SOURCES:
        paths = Path(name).rglob("*") if Path(name).is_dir() else [Path(name)]
        for path in paths:
            # `make docs` builds the site after the tests have run, and changes no source by that; nor does what
            # Python and the stand-in keep beside the bytecode.
            built = "__pycache__" in path.parts or SITE in path.parents
            if path.is_file() and not built and path != DOCUMENT:
                yield path


def main() -> int:
    """Prints rows and faults; returns 0, 1 for faults, 2 when the tests or the rows cannot be read."""
    endings = read_endings() or run_suite()
    if endings is None:
        print(
            "The tests did not come to their end, so nothing can be said of the rows.",
            file=sys.stderr,
        )
        return 2
    try:
        verdict = judge(read_table(DOCUMENT.read_text()), endings)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    print(*verdict.lines, sep="\n")
    print(*verdict.faults, sep="\n", end="\n" if verdict.faults else "", file=sys.stderr)
    return 1 if verdict.faults else 0


if __name__ == "__main__":
    sys.exit(main())
