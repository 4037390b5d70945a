"""Runs a script behind a boundary: its own clock, its own group of processes, and a reader that stops at a size."""

import asyncio
import json
import os
import selectors
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import ceil
from pathlib import Path
from threading import Lock
from typing import Literal

from pydantic import Field

from kit.core.value import Value
from kit.sandbox.boundary import PYTHON, Boundary
from kit.sandbox.seccomp import filter_program

AT_ONCE = min(16, 2 * (os.cpu_count() or 1) + 2)
"""Scripts that run at the same time in a process, whatever number of kits asks for them; the others wait their turn."""
_READERS = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="script")
"""Waits for scripts on threads of its own: asyncio's default ones are few, and others need them."""
CHILD = Path(__file__).with_name("child.py")
ERROR_SIZE = 4_000
"""Characters that are kept of what a script said of its failure."""


class ScriptLimits(Value):
    """What one run may use, where `tool_config` of the agent's card says nothing else under `exec_python`."""

    seconds: float = Field(default=30.0, gt=0)
    """Of the wall clock."""
    output: int = Field(default=500_000, gt=0)
    """Bytes written, errors among them."""
    input: int = Field(default=64 * 2**20, gt=0)
    """Bytes of a file that it reads."""
    memory: int = Field(default=512 * 2**20, ge=64 * 2**20)
    """Bytes of address space, the interpreter's some 20 MB among them."""


class ScriptResult(Value):
    """What became of a script."""

    stdout: str
    stderr: str = ""
    """The end of what it wrote there: for a script that raised, the traceback."""
    exit: int | None
    """Its exit code; 128 and the signal for one that died of it; None for one that was stopped."""
    reason: Literal["failed", "timeout", "oversized_output"] | None = None
    """None where it ended by itself with 0; of one that was stopped `stdout` is only the beginning."""
    size: int = 0
    """Bytes that were read of what it wrote, errors among them."""


async def run_script(
    script: str, data: bytes, boundary: Boundary, limits: ScriptLimits
) -> ScriptResult:
    """Runs a script, whose `input_file` holds the data. When this is cancelled the script is killed.

    Where as many scripts run as a process may run at once, this one begins, and its time too, when one of them ends.
    """
    run = _Run(script, data, boundary, limits)
    try:
        return await asyncio.get_running_loop().run_in_executor(_READERS, run.to_end)
    finally:
        run.stop()


def run_to_end(script: str, data: bytes, boundary: Boundary, limits: ScriptLimits) -> ScriptResult:
    """The same, for callers without an event loop."""
    return _Run(script, data, boundary, limits).to_end()


class _Run:
    """One script, from its start on a thread to its end; `stop` may be called from another thread at any time."""

    def __init__(self, script: str, data: bytes, boundary: Boundary, limits: ScriptLimits):
        self._script = script
        self._data = data
        self._boundary = boundary
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False
        self._lock = Lock()

    def to_end(self) -> ScriptResult:
        # A script that is stopped before it was begun is not begun.
        with self._lock:
            if self._is_stopped:
                return ScriptResult(stdout="", exit=None, reason="timeout")
            process = _start(self._script, self._data, self._boundary, self._limits)
            self._process = process
        return _collect(process, self._limits)

    def stop(self) -> None:
        """Kills the script if it runs, and keeps it from being begun if it does not yet."""
        with self._lock:
            self._is_stopped = True
            if self._process is not None:
                _kill(self._process)


def _start(
    script: str, data: bytes, boundary: Boundary, limits: ScriptLimits
) -> subprocess.Popen[bytes]:
    source = script.encode("utf-8", "replace")
    config = {
        "script": len(source),
        "seconds": ceil(limits.seconds) + 1,
        "memory": limits.memory,
        "landlock": boundary.landlock,
        "filter": filter_program().hex(),
    }
    # A file in memory alone: a pipe would have to be written while the output is read.
    with open(os.memfd_create("script"), "w+b") as content:
        content.write(source)
        content.write(data)
        content.seek(0)
        return subprocess.Popen(
            [*boundary.command, *PYTHON, CHILD.read_text(), json.dumps(config)],
            stdin=content,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={},
            cwd="/",
            start_new_session=True,
        )


def _collect(process: subprocess.Popen[bytes], limits: ScriptLimits) -> ScriptResult:
    """Reads until the process ends, its time is over or its output is too long; whatever is left of
    it then is killed."""
    end = time.monotonic() + limits.seconds
    assert process.stdout and process.stderr
    stdout = bytearray()
    stderr = bytearray()
    reason: Literal["failed", "timeout", "oversized_output"] | None = None
    with selectors.DefaultSelector() as selector, process.stdout, process.stderr:
        selector.register(process.stdout, selectors.EVENT_READ, stdout)
        selector.register(process.stderr, selectors.EVENT_READ, stderr)
        while selector.get_map() and reason is None:
            for key, _ in selector.select(max(0.0, end - time.monotonic())):
                # One byte more than is allowed tells an output that is too long from one that just fits.
                block = os.read(key.fd, limits.output + 1 - len(stdout) - len(stderr))
                key.data.extend(block)
                if not block:
                    selector.unregister(key.fileobj)
            if len(stdout) + len(stderr) > limits.output:
                reason = "oversized_output"
            elif time.monotonic() >= end:
                reason = "timeout"
    was_stopped = reason is not None
    if was_stopped:
        _kill(process)
    code = process.wait()
    # Python tells a signal by a negative number; shells add it to 128.
    exit_code = code if code >= 0 else 128 - code
    if code and not was_stopped:
        reason = "failed"
    return ScriptResult(
        stdout=stdout[: limits.output].decode("utf-8", "replace"),
        stderr=stderr.decode("utf-8", "replace")[-ERROR_SIZE:],
        exit=None if was_stopped else exit_code,
        reason=reason,
        size=len(stdout) + len(stderr),
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
