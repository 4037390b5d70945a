"""Which boundary holds on this machine: found out by a script that tries to get out, once in a process."""

import subprocess
from functools import cache

from kit.core.errors import KitError
from kit.sandbox.boundary import Boundary, SandboxUnavailable, bubblewrap, landlock
from kit.sandbox.process import ScriptLimits, run_to_end

SCRIPT = """
import ctypes
libc = ctypes.CDLL(None)
print(libc.open(b"/", 0), libc.socket(2, 1, 0), libc.fork(), libc.kill(1, 0))
"""


@cache
def find_boundary() -> Boundary:
    """The first boundary that holds: bubblewrap, else Landlock. Raises SandboxUnavailable, which says why neither does.

    It takes some 100 ms, once in a process.
    """
    reasons: list[str] = []
    for make in (bubblewrap, landlock):
        try:
            boundary = make()
            check_boundary(boundary)
        # AttributeError: not on Linux.
        except (KitError, OSError, AttributeError, subprocess.SubprocessError) as error:
            reasons.append(f"{make.__name__}: {error}")
        else:
            return boundary
    raise SandboxUnavailable(
        "no sandbox holds on this machine, so no script runs. " + "; ".join(reasons)
    )


def check_boundary(boundary: Boundary) -> None:
    """Runs a script that opens, connects, forks and signals. Raises SandboxUnavailable where any of
    that is not refused."""
    result = run_to_end(SCRIPT, b"", boundary, ScriptLimits(seconds=10))
    if result.stdout.split() != ["-1"] * 4:
        words = result.stderr or result.stdout
        raise SandboxUnavailable(f"it does not hold here: {words.strip()[-300:]}")
