"""What Python runs inside the sandbox. It is handed over as text: no file of the kit can be read
there, and only the standard library is imported. It reads a script and its input, gives up every
right for good, and only then looks at the script.

After that the process can compute, write to its two pipes, sleep and end. Nothing can be opened, so
what a script may import is imported before, by the words that stand in it.
"""

import builtins
import ctypes
import io
import json
import os
import resource
import sys
from contextlib import suppress
from types import TracebackType
from typing import Any

MODULES = """
abc array base64 binascii bisect calendar cmath collections contextlib copy csv dataclasses datetime decimal difflib
enum fractions functools graphlib gzip hashlib heapq html html.parser itertools json math numbers operator pathlib
pprint random re statistics string _strptime struct textwrap time traceback types typing unicodedata urllib.parse
xml.etree.ElementTree zlib
"""
ENCODINGS = (
    "encodings.ascii encodings.cp1252 encodings.latin_1 encodings.utf_16 encodings.utf_8_sig"
)
NOBODY = 65534
INPUT = "/input"
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""How many rights over files each version of Landlock knows; those from 5 on know 16."""

_libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: Any) -> int:
    """Calls a function of libc. Raises OSError."""
    result = getattr(_libc, name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def limit(seconds: int, memory: int) -> None:
    """Bounds processor time and address space; forbids files and core dumps."""
    limits = {"CPU": seconds, "AS": memory, "FSIZE": 0, "CORE": 0}
    for name, value in limits.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))


def import_modules(words: bytes) -> None:
    """Imports the modules that a script may use and whose names stand in it."""
    for name in MODULES.split():
        if name.split(".")[0].strip("_").encode() in words:
            __import__(name)
    for name in ENCODINGS.split():
        __import__(name)


def drop_root() -> None:
    """Becomes nobody, where the process is root and may."""
    if os.getuid() == 0:
        with suppress(PermissionError):
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)


def forbid_new_rights() -> None:
    """No program gains rights, nobody debugs this process, and it ends with the one that started it."""
    # PR_SET_NO_NEW_PRIVS, PR_SET_DUMPABLE, and PR_SET_PDEATHSIG with SIGKILL.
    call("prctl", 38, 1, 0, 0, 0)
    call("prctl", 4, 0, 0, 0, 0)
    call("prctl", 1, 9, 0, 0, 0)


def restrict_by_landlock(strict: bool) -> None:
    """Gives up all files, ports and signals by Landlock. Raises OSError where the kernel has none, if `strict`."""
    try:
        version = call("syscall", 444, None, 0, 1)
    except OSError:
        if strict:
            raise
        return
    rights = (1 << FILE_RIGHTS.get(version, 16)) - 1
    # Ports are known from version 4 on, signals and abstract sockets from 6 on. An older kernel
    # refuses a longer structure than it knows.
    rules = [rights]
    if version >= 4:
        rules.append(0b11)
    if version >= 6:
        rules.append(0b11)
    content = (ctypes.c_uint64 * len(rules))(*rules)
    ruleset = call("syscall", 444, content, ctypes.sizeof(content), 0)
    call("syscall", 446, ruleset, 0)


def filter_calls(program: bytes) -> None:
    """Gives up every system call that the seccomp program does not allow."""

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

    call("prctl", 22, 2, ctypes.byref(Program(len(program) // 8, program)), 0, 0)


def open_input(data: bytes) -> Any:
    """What stands in the place of `open`: it opens the input for reading, as often as one likes, and nothing else."""

    def open(
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: Any = None,
        newline: Any = None,
    ) -> Any:
        if str(file) != INPUT or not set(mode) <= set("rbt"):
            raise PermissionError(
                13, "only input_file can be opened, and only for reading", str(file)
            )
        raw = io.BytesIO(data)
        if "b" in mode:
            return raw
        return io.TextIOWrapper(raw, encoding or "utf-8", errors, newline)

    return open


def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Says where a script failed. Python's own words may need modules, which cannot be imported any more."""
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == "script":
            print(f"line {trace.tb_lineno}, in {code.co_name}", file=sys.stderr)
        trace = trace.tb_next
    print(f"{kind.__name__}: {error}", file=sys.stderr)


def main() -> None:
    config = json.loads(sys.argv[1])
    limit(config["seconds"], config["memory"])
    content = sys.stdin.buffer.read()
    script = content[: config["script"]]
    data = content[config["script"] :]
    del content
    import_modules(script)
    builtins.open = io.open = open_input(data)
    sys.stdin = open(INPUT)  # noqa: SIM115
    drop_root()
    forbid_new_rights()
    restrict_by_landlock(strict=config["landlock"])
    filter_calls(bytes.fromhex(config["filter"]))
    sys.excepthook = report
    exec(compile(script, "script", "exec"), {"__name__": "__main__", "input_file": INPUT})


if __name__ == "__main__":
    main()
