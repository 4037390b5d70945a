"""The sandbox of exec_python: ways out are shut, limits hold, and where nothing holds nothing runs."""

import asyncio
import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kit.core.errors import KitError
from kit.sandbox.boundary import PYTHON, Boundary, SandboxUnavailable, bubblewrap, landlock
from kit.sandbox.probe import check_boundary, find_boundary
from kit.sandbox.process import AT_ONCE, CHILD, ScriptLimits, ScriptResult, run_script, run_to_end
from kit.sandbox.seccomp import ALLOW, ARCHITECTURES, CALLS, KILL, REFUSE, filter_program
from tests.forks import started
from tests.security.escapes import ALONE, ESCAPES, FILES, KILLED, OF_SOME_HOSTS, script, verdicts

CI = os.environ.get("CI") == "true"
A_MINUTE = 60.0
"""Seconds in which even a busy machine does what it does at once; only a hang takes longer."""
BOUNDARIES = {"bubblewrap": bubblewrap, "landlock": landlock}


@cache
def held_by(name: str) -> Boundary:
    """The boundary of this name; the test is skipped where the machine lacks it, but not in CI."""
    try:
        boundary = BOUNDARIES[name]()
        check_boundary(boundary)
    except SandboxUnavailable as error:
        if CI:
            raise
        pytest.skip(str(error))
    return boundary


@pytest.fixture(scope="module", params=BOUNDARIES)
def boundary(request: pytest.FixtureRequest) -> Boundary:
    return held_by(request.param)


@pytest.fixture(scope="module")
def victim() -> Iterator[int]:
    """The id of a process that somebody else runs."""
    with subprocess.Popen(["sleep", "300"]) as process:
        yield process.pid
        process.kill()


@pytest.fixture
def places(
    tmp_path: Path, victim: int, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """What an escape reaches for: files of the host, its key, its open descriptor, its process and another one."""
    monkeypatch.setenv("HOST_KEY", "sk-of-the-host")
    for name in ("secret", "victim", ".ssh/id_ed25519"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("of the host")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    tmp_path.chmod(0o777)
    descriptor = os.open(tmp_path / "secret", os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    names = {"SECRET": "secret", "SSH": ".ssh/id_ed25519", "LINK": "link", "FOLDER": ""}
    paths = {key: str(tmp_path / name) for key, name in names.items()}
    yield {**paths, "DESCRIPTOR": descriptor, "HOST": os.getpid(), "VICTIM": victim}
    os.close(descriptor)


def run(code: str, boundary: Boundary, data: bytes = b"", **limits: Any) -> ScriptResult:
    return run_to_end(code, data, boundary, ScriptLimits(**{"seconds": 600, **limits}))


# Ways out


def open_ways(output: str, names: Iterable[str]) -> list[str]:
    """Which of these escapes a script made; each of them was tried."""
    told = verdicts(output)
    assert {*names} - {*told} <= {KILLED}, "what was not tried proves nothing"
    return [name for name, verdict in told.items() if verdict == "ESCAPED"]


@pytest.mark.req("AS-7")
def test_no_way_out_is_open(boundary: Boundary, places: dict[str, Any]):
    result = run(script(ESCAPES, **places), boundary)
    assert open_ways(result.stdout, ESCAPES) == []
    assert result.reason in (None, "failed")


def test_every_way_out_is_one_where_nothing_holds_it(places: dict[str, Any]):
    """A script that could not get out anywhere would prove nothing of the sandbox."""
    together = [name for name in ESCAPES if name not in ALONE]
    told = verdicts(plain(script(together, **places), places["DESCRIPTOR"]))
    with subprocess.Popen(["sleep", "300"]) as process:
        for name in ALONE:
            output = plain(script([name], **{**places, "VICTIM": process.pid}))
            told[name] = "ESCAPED" if "ESCAPED" in output else output
        assert process.wait() == -15
    shut = [name for name in ESCAPES if told.get(name) != "ESCAPED"]
    assert CI is False or shut == []
    assert {*shut} <= OF_SOME_HOSTS, "this host may refuse some to everybody"


def plain(code: str, *descriptors: int, **options: Any) -> str:
    """What a script prints without a sandbox."""
    command = [*PYTHON, code]
    return subprocess.run(
        command,
        pass_fds=descriptors,
        input="x",
        capture_output=True,
        text=True,
        check=False,
        **options,
    ).stdout


def test_the_list_of_system_calls_holds_alone(places: dict[str, Any]):
    """Where a kernel's Landlock has a hole, seccomp stands."""
    names = [name for name in ESCAPES if not name.startswith("find a key")]
    assert open_ways(with_walls(["filter_calls"], script(names, **places)), names) == []


@pytest.mark.parametrize("wall", ["bubblewrap", "landlock"])
def test_each_boundary_holds_files_alone(wall: str, places: dict[str, Any]):
    """Where seccomp's list has a hole, the boundary stands."""
    walls = ["restrict_by_landlock"] if wall == "landlock" else []
    output = with_walls(walls, script(FILES, **places), held_by(wall).command)
    assert open_ways(output, FILES) == []


def with_walls(walls: list[str], code: str, command: tuple[str, ...] = ()) -> str:
    """What a script prints behind some walls only: the others are taken out of the sandbox's own code."""
    source = CHILD.read_text()
    for wall in {"filter_calls", "restrict_by_landlock"} - set(walls):
        assert source.count(f"\n    {wall}(") == 1
        source = source.replace(f"\n    {wall}(", "\n    (lambda *_, **__: None)(")
    config = {
        "script": len(code),
        "seconds": 10,
        "memory": 2**29,
        "landlock": True,
        "filter": filter_program().hex(),
    }
    process = subprocess.run(
        [*command, *PYTHON, source, json.dumps(config)],
        input=code,
        env={},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.stdout or "Error" in process.stderr or process.returncode in (-31, 159), process
    return process.stdout


def verdict(program: bytes, architecture: int, number: int) -> int:
    """What seccomp would do with a call: the program, carried out here."""
    steps, place, value = list(struct.iter_unpack("=HBBI", program)), 0, 0
    while True:
        code, yes, no, operand = steps[place]
        place += 1
        match code:
            case 0x20:
                value = {0: number, 4: architecture}[operand]
            case 0x15:
                place += yes if value == operand else no
            case _:
                return operand


@pytest.mark.parametrize(("column", "machine"), list(enumerate(ARCHITECTURES)))
def test_the_program_of_each_architecture_allows_its_calls_alone(column: int, machine: str):
    """Also that of the architecture which is not this machine's."""
    program, numbers = filter_program(machine), {both[column] for both in CALLS.values()}
    assert {
        n for n in range(600) if verdict(program, ARCHITECTURES[machine], n) == ALLOW
    } == numbers
    assert {
        verdict(program, ARCHITECTURES[machine], n) for n in {*range(600), 1 << 30 | 1} - numbers
    } == {REFUSE}
    others = [0x40000003, *(number for name, number in ARCHITECTURES.items() if name != machine)]
    assert {verdict(program, other, n) for other in others for n in range(600)} == {KILL}


def test_a_machine_whose_calls_are_not_known_is_refused():
    with pytest.raises(
        KitError, match="the system calls of riscv64 are not known; run it on x86_64 or aarch64"
    ):
        filter_program("riscv64")


# Limits


@pytest.mark.req("AS-7")
def test_a_script_without_an_end_is_stopped_on_time(boundary: Boundary):
    code = "import time\nwhile True: time.sleep(0.01), print(end='x', flush=True)"
    begun = time.monotonic()
    result = run(code, boundary, seconds=1)
    assert 1.0 <= time.monotonic() - begun < A_MINUTE
    assert (result.reason, result.exit) == ("timeout", None)


@pytest.mark.req("AS-7", "AS-25")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_gigabyte_of_output_is_cut_at_its_limit(stream: str, boundary: Boundary):
    assert (ScriptLimits().seconds, ScriptLimits().output) == (30, 500_000)
    code = f"import sys\nfor _ in range(1000):\n  sys.{stream}.write('x' * 10**6)\n  sys.{stream}.flush()"
    result = run(code, boundary)
    assert (result.reason, result.exit) == ("oversized_output", None)
    assert (
        len(result.stdout) == (500_000 if stream == "stdout" else 0) and len(result.stderr) <= 4_000
    )
    assert result.size == 500_001


@pytest.mark.req("AS-7")
def test_memory_ends_at_its_limit(boundary: Boundary):
    memory = 64 * 2**20
    code = """
rows = []
try:
    while True:
        rows.append(bytearray(2**20))
except MemoryError:
    size, rows = len(rows), None
print(size)
"""
    size = int(run(code, boundary, memory=memory).stdout) * 2**20
    assert memory - 50 * 2**20 < size <= memory


@pytest.mark.realtime
async def test_a_cancelled_script_is_ended(boundary: Boundary, victim: int):
    others = children()
    task = asyncio.create_task(run_script("while True: pass", b"", boundary, ScriptLimits()))
    async with asyncio.timeout(A_MINUTE):
        while not children() - others:
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(A_MINUTE):
        while children() - others:
            await asyncio.sleep(0.01)
    assert victim in children()


@pytest.mark.realtime
async def test_scripts_take_no_thread_of_others_and_no_more_places_than_a_process_has(
    boundary: Boundary,
):
    others = children()
    limits = ScriptLimits(seconds=600)
    forever = "import time\ntime.sleep(600)"
    tasks = [
        asyncio.create_task(run_script(forever, b"", boundary, limits)) for _ in range(AT_ONCE + 40)
    ]
    async with asyncio.timeout(60):
        while len(children() - others) < AT_ONCE:
            await asyncio.sleep(0.01)
        assert await asyncio.to_thread(sum, (1, 2)) == 3
    await asyncio.sleep(0.3)
    assert len(children() - others) == AT_ONCE, "the others wait, each without a process"
    for task in tasks:
        task.cancel()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError) for end in ends)
    async with asyncio.timeout(20):
        while children() - others:
            await asyncio.sleep(0.01)
    result = await run_script("print(6 * 7)", b"", boundary, ScriptLimits(seconds=60))
    assert result.stdout == "42\n", "the places are free again"


def run_for_ever(name: str) -> None:
    run_to_end("while True: pass", b"", BOUNDARIES[name](), ScriptLimits())


def test_a_script_does_not_outlive_a_host_that_is_killed(boundary: Boundary):
    host = started(run_for_ever, boundary.name)
    assert host.pid is not None
    end = time.monotonic() + A_MINUTE
    while not (scripts := busy(descendants(host.pid))) and time.monotonic() < end:
        time.sleep(0.05)
    host.kill()
    host.join()
    end = time.monotonic() + A_MINUTE
    while busy(scripts) and time.monotonic() < end:
        time.sleep(0.05)
    assert scripts and not busy(scripts)


def descendants(process: int) -> set[int]:
    direct = children(str(process))
    return direct.union(*map(descendants, direct))


def busy(processes: set[int]) -> set[int]:
    """Those that are there and have used more than a tenth of a second."""
    stats = {
        one: path.read_text().rpartition(")")[2].split()
        for one in processes
        if (path := Path(f"/proc/{one}/stat")).exists()
    }
    return {one for one, fields in stats.items() if fields[0] != "Z" and int(fields[11]) >= 10}


def children(process: str = "self") -> set[int]:
    """The processes that one has started and that are there."""
    return {
        int(word)
        for path in Path(f"/proc/{process}/task").glob("*/children")
        for word in path.read_text().split()
    }


# What a script can do


def test_the_input_is_read_as_files_are(boundary: Boundary):
    code = """
import io, pathlib, sys
print(open(input_file, 'rb').read().decode(), pathlib.Path(input_file).read_text())
print(sys.stdin.read(), io.open(input_file).read())
"""
    assert run(code, boundary, "ä".encode()).stdout == "ä ä\nä ä\n"


def test_the_plain_part_of_the_standard_library_is_there_and_the_rest_is_not(
    boundary: Boundary,
):
    code = """
import csv, datetime, decimal, re, statistics
print(datetime.datetime.strptime("2026-11-01", "%Y-%m-%d").year, statistics.mean([1, 2]))
"""
    assert run(code, boundary).stdout == "2026 1.5\n"
    assert "No module named 'socket'" in run("import socket", boundary).stderr
    assert "No module named 'pydantic'" in run("import pydantic", boundary).stderr
    assert "only input_file can be opened" in run("open('/etc/passwd')", boundary).stderr


@pytest.mark.parametrize(
    ("code", "exit", "words"),
    [
        (
            "def half(n):\n  return n / 0\nhalf(1)",
            1,
            "line 3, in <module>\nline 2, in half\nZeroDivisionError: division by zero\n",
        ),
        ("if:", 1, "SyntaxError: invalid syntax (script, line 1)\n"),
        ("raise SystemExit(3)", 3, ""),
        ("import ctypes\nctypes.string_at(0)", 139, ""),
        ("\ud800", 1, "SyntaxError: invalid syntax (script, line 1)\n"),
    ],
)
def test_a_failure_is_told_by_the_scripts_own_words(code: str, exit: int, words: str):
    result = run(code, find_boundary())
    assert (result.reason, result.exit) == ("failed", exit)
    assert result.stderr == words


# Where nothing holds


def test_without_bubblewrap_landlock_is_found(monkeypatch: pytest.MonkeyPatch):
    held_by("landlock")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert find_boundary.__wrapped__().name == "landlock"


def test_bubblewrap_comes_first():
    held_by("bubblewrap")
    assert find_boundary.__wrapped__().name == "bubblewrap"


REFUSING = """
import struct, sys
from kit.sandbox.child import filter_calls, forbid_new_rights
number, errno = 444, 38
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | errno), (0x06, 0, 0, 0x7FFF0000)]
forbid_new_rights()
filter_calls(b"".join(struct.pack("=HBBI", *step) for step in steps))
from kit.sandbox.boundary import SandboxUnavailable
from kit.sandbox.probe import find_boundary
try:
    print(find_boundary())
except SandboxUnavailable as error:
    print(error)
"""
"""A process whose kernel knows no Landlock: seccomp answers as such a kernel does."""


@pytest.mark.req("AS-7")
def test_where_nothing_holds_nothing_runs(tmp_path: Path):
    """A bwrap that cannot make namespaces, as in many containers, and a kernel without Landlock."""
    (tmp_path / "bwrap").write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n"
    )
    (tmp_path / "bwrap").chmod(0o755)
    command = [sys.executable, "-c", REFUSING]
    done = subprocess.run(
        command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith(
        "no sandbox holds on this machine, so no script runs. bubblewrap: bwrap does not hold here"
    ), done
    assert (
        "No permissions to create a new namespace; landlock: it does not hold here" in done.stdout
    )


def test_a_bwrap_that_holds_nothing_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "bwrap").write_text(
        '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n'
    )
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(SandboxUnavailable, match="does not hold here: False True False"):
        bubblewrap()
