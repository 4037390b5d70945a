"""Processes for tests to kill, forks of one that has no other thread: a lock that such a thread
holds stays locked in a fork."""

import sys
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
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
