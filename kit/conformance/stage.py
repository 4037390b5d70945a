"""Plays scenarios with one system, each in a process of its own: `python -m kit.conformance.stage JOBS SYSTEM`.

It runs in the environment of the system's framework. The system is imported once, and each play is
a fork of that. SYSTEM is `file.py:NAME`; JOBS is a file with a JSON list of `Job`s.
"""

import asyncio
import importlib.util
import inspect
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kit.conformance.child import Receipts, make_child
from kit.conformance.judge import Evidence
from kit.conformance.scenario import BY_ID, Scenario
from kit.conformance.task import Model, Task

PATIENCE = 15.0
"""Seconds a user waits for an answer; then the turn is cancelled, as a server does whose client has gone."""
GRACE = 2.0
"""Seconds in which what was stopped may come to its end."""
OVERTIME = 15.0
"""Seconds beyond the patience after which the process of a play is killed."""
AT_ONCE = 3
"""Plays that run at the same time: most of them wait."""


@dataclass(frozen=True, slots=True)
class Job:
    """One play that a stage is to do."""

    scenario: str
    best: bool
    base_url: str
    folder: str
    """Its receipts, its result and whatever the system stores."""
    patience: float = PATIENCE


def load_system(reference: str) -> Any:
    """The object that `file.py:NAME` names."""
    file, _, name = reference.rpartition(":")
    path = Path(file).resolve()
    # Its neighbours are imported as they are where it is run by itself.
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return getattr(module, name)


async def play(system: Any, job: Job, resumes: bool) -> Evidence:
    """Plays one scenario and waits until nothing runs, or the grace is over; returns what its own process saw of it."""
    scenario = BY_ID[job.scenario]
    folder = Path(job.folder)
    receipts = Receipts(folder / "receipts.jsonl")
    task = _task(scenario, job, receipts, resumes)
    start = time.monotonic()
    turn = asyncio.ensure_future(_call(system, task))
    if scenario.stops:
        await _wait_for_the_middle(receipts, turn, job.patience)
        turn.cancel()
        await asyncio.wait([turn], timeout=GRACE)
    else:
        await asyncio.wait([turn], timeout=job.patience)
    if turn.done():
        text, error = _read(turn)
    else:
        text, error = "", f"no answer within {job.patience:.0f} s"
        turn.cancel()
    end = time.monotonic()
    deadline = time.monotonic() + GRACE
    while receipts.running and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    running = tuple(receipts.running)
    return Evidence(text, error, seconds=end - start, end=end, still_running=running)


def _task(scenario: Scenario, job: Job, receipts: Receipts, resumes: bool) -> Task:
    children = [make_child(plan, receipts, job.base_url, resumes) for plan in scenario.children]
    return Task(
        message=scenario.message,
        children=tuple(children),
        model=Model("orchestrator", job.base_url),
        best=job.best,
        folder=Path(job.folder),
        resumes=resumes,
        seconds=scenario.seconds,
        cap=scenario.cap,
        model_calls=scenario.model_calls,
    )


async def _call(system: Any, task: Task) -> str:
    """Asks the system; a plain function runs in a thread, as servers run them."""
    if inspect.iscoroutinefunction(system):
        return str(await system(task))
    return str(await asyncio.to_thread(system, task))


async def _wait_for_the_middle(
    receipts: Receipts, turn: "asyncio.Future[str]", patience: float
) -> None:
    deadline = time.monotonic() + patience
    while ("hotels", "hangs") not in receipts.read() and not turn.done():
        if time.monotonic() > deadline:
            return
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.2)


def _read(turn: "asyncio.Future[str]") -> tuple[str, str]:
    """The text of a turn that has ended, and what it raised in place of one."""
    if turn.cancelled():
        return "", "CancelledError"
    error = turn.exception()
    if error is None:
        return turn.result(), ""
    trace = "".join(traceback.format_exception(error))
    print(trace, file=sys.stderr)
    return "", f"{type(error).__name__}: {error}"[:400]


# ── processes ────────────────────────────────────────────────────────────────────────────────────────


def _fork(system: Any, job: Job, resumes: bool) -> int:
    """Starts the process of a play and returns its id."""
    process = os.fork()
    if process:
        return process
    os.setsid()
    log = os.open(Path(job.folder) / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    code = 1
    try:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        ending = loop.run_until_complete(play(system, job, resumes))
        (Path(job.folder) / "ending.json").write_text(json.dumps(asdict(ending)))
        code = 0
    # A border: a fork must end here whatever a system raises, and its code says that it failed.
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        # Whatever the system has left behind in threads and tasks ends with the process.
        os._exit(code)


def run(system: Any, jobs: Sequence[Job]) -> None:
    """Plays all jobs, a few at a time; what a play comes to stands in its folder."""
    waiting = list(jobs)
    running: dict[int, tuple[Job, float, bool]] = {}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            job = waiting.pop(0)
            running[_fork(system, job, resumes=False)] = (job, time.monotonic(), False)
        for process, (job, start, resumes) in list(running.items()):
            finished, status = os.waitpid(process, os.WNOHANG)
            if finished:
                del running[process]
                _kill_group(process)
                is_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
                if is_killed and BY_ID[job.scenario].kills and not resumes:
                    running[_fork(system, job, resumes=True)] = (job, time.monotonic(), True)
            elif time.monotonic() - start > job.patience + OVERTIME:
                _kill_group(process)
        time.sleep(0.02)


def _kill_group(process: int) -> None:
    """Ends what a play has started, and the play itself where it still runs."""
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)


def about(system: Any) -> dict[str, Any]:
    """What the module of a system says of itself in its capital names, and the versions of its PACKAGES."""
    names: dict[str, Any] = getattr(sys.modules.get(system.__module__), "__dict__", {})
    packages: dict[str, str] = {}
    for package in names.get("PACKAGES", ()):
        packages[package] = version(package)
    return {
        "name": names.get("NAME", system.__module__),
        # Of the environment that was played.
        "packages": packages,
        # What the best configuration sets, and where each of the two is documented.
        "configuration": names.get("CONFIGURATION", ""),
        "defaults_source": names.get("DEFAULTS_SOURCE", ""),
        "best_source": names.get("BEST_SOURCE", ""),
        # Scenario -> why the system has nothing for it.
        "not_offered": names.get("NOT_OFFERED", {}),
    }


def main() -> int:
    jobs_file = Path(sys.argv[1])
    jobs = [Job(**job) for job in json.loads(jobs_file.read_text())]
    system = load_system(sys.argv[2])
    (jobs_file.parent / "about.json").write_text(json.dumps(about(system)))
    run(system, jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
