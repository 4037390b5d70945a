"""Processes for tests to kill, forks of one that has no other thread: a lock that such a thread
holds stays locked in a fork."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any

FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(
    ["tests.plan_points", "kit.stores.documents.sql", "kit.wire", "pytest"]
)


def started(work: Callable[..., object], *arguments: Any) -> BaseProcess:
    """Runs work, which can be pickled, in a process of its own, and returns that process."""
    process = FORKS.Process(target=work, args=arguments, daemon=True)
    # What stands there is run in the new process; in the middle of a run that may be the page of a test.
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        process.start()
    finally:
        sys.modules["__main__"] = main
    return process


def exit_code(work: Callable[..., object], *arguments: Any, seconds: float = 60.0) -> int:
    """Runs work in a process of its own; returns the exit code, the negated signal where one killed it.

    A process that takes longer than so many seconds is killed, and raises TimeoutError.
    """
    process = started(work, *arguments)
    process.join(seconds)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise TimeoutError(f"{work.__name__} hung for {seconds:g} seconds and was killed")
    return process.exitcode


@dataclass(frozen=True)
class Printed:
    """What a process left that ran a piece of code."""

    returncode: int
    stdout: str
    stderr: str


def printed_by(
    code: str, arguments: Sequence[str], environment: Mapping[str, str], folder: Path
) -> Printed:
    """Runs code in a process with this environment; its two streams become files of the folder."""
    code_of_exit = exit_code(_run_code, code, arguments, environment, folder, seconds=600)
    stdout, stderr = ((folder / name).read_text() for name in ("stdout", "stderr"))
    return Printed(code_of_exit, stdout, stderr)


def _run_code(
    code: str, arguments: Sequence[str], environment: Mapping[str, str], folder: Path
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    for stream, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT), stream)
    sys.argv = ["-c", *arguments]
    exec(code, {"__name__": "__main__"})
