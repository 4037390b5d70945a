"""Runs a script behind a boundary: its own clock, its own group of processes, and a reader that stops at a size."""

import asyncio
import json
import os
import selectors
import signal
import subprocess
import time
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import Literal

from pydantic import Field

from kit.core.value import Value
from kit.sandbox.boundary import PYTHON, Boundary
from kit.sandbox.seccomp import filter_program

CHILD = Path(__file__).with_name("child.py")
ERROR_SIZE = 4_000
"""Characters that are kept of what a script said of its failure."""


class ScriptLimits(Value):
    """What one run may use."""

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
    truncated: bool = False
    """`stdout` is only the beginning."""
    reason: Literal["failed", "timeout", "oversized_output"] | None = None
    """None where it ended by itself with 0."""
    size: int = 0
    """Bytes that were read of what it wrote, errors among them."""


async def run_script(
    script: str, data: bytes, boundary: Boundary, limits: ScriptLimits
) -> ScriptResult:
    """Runs a script, whose `input_file` holds the data. When this is cancelled the script is killed."""
    process = _start(script, data, boundary, limits)
    try:
        return await asyncio.to_thread(_collect, process, limits)
    finally:
        _kill(process)


def run_to_end(script: str, data: bytes, boundary: Boundary, limits: ScriptLimits) -> ScriptResult:
    """The same, for callers without an event loop."""
    return _collect(_start(script, data, boundary, limits), limits)


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
    stdout, stderr = bytearray(), bytearray()
    reason: Literal["failed", "timeout", "oversized_output"] | None = None
    with selectors.DefaultSelector() as selector, process.stdout, process.stderr:
        selector.register(process.stdout, selectors.EVENT_READ, stdout)
        selector.register(process.stderr, selectors.EVENT_READ, stderr)
        while selector.get_map() and reason is None:
            for key, _ in selector.select(max(0.0, end - time.monotonic())):
                block = os.read(key.fd, limits.output + 1 - len(stdout) - len(stderr))
                key.data.extend(block)
                if not block:
                    selector.unregister(key.fileobj)
            if len(stdout) + len(stderr) > limits.output:
                reason = "oversized_output"
            elif time.monotonic() >= end:
                reason = "timeout"
    if reason is not None:
        _kill(process)
    code = process.wait()
    if reason is None and code:
        reason = "failed"
    return ScriptResult(
        stdout=stdout[: limits.output].decode("utf-8", "replace"),
        stderr=stderr.decode("utf-8", "replace")[-ERROR_SIZE:],
        exit=None
        if reason in ("timeout", "oversized_output")
        else code
        if code >= 0
        else 128 - code,
        truncated=reason in ("timeout", "oversized_output"),
        reason=reason,
        size=len(stdout) + len(stderr),
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
