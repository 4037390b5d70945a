"""The two ways to lock a script in: Linux namespaces made by bubblewrap, and the kernel's Landlock."""

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kit.core.errors import KitError

PYTHON = (
    str(Path(getattr(sys, "_base_executable", sys.executable)).resolve()),
    "-I",
    "-S",
    "-B",
    "-X",
    "utf8",
    "-c",
)
"""The interpreter below any virtual environment: no site-packages, no variables, nothing written."""
OUTSIDE = (
    "import os; print(os.getpid() < 10, not os.environ.keys() - {'PWD', 'LC_CTYPE'}, not "
    "os.path.exists('/proc/self'))"
)


class SandboxUnavailable(KitError):
    """Nothing on this machine can lock a script in."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """A way to lock a script in. Whichever it is, seccomp's list of system calls holds inside."""

    name: Literal["bubblewrap", "landlock"]
    command: tuple[str, ...] = ()
    """What stands in front of the interpreter."""
    landlock: bool = True
    """Whether a kernel without Landlock is refused; inside bubblewrap it is a third wall where there is one."""


def bubblewrap() -> Boundary:
    """Namespaces of its own, and of files the interpreter's alone. Raises SandboxUnavailable where
    they cannot be made."""
    path = shutil.which("bwrap")
    if path is None:
        raise SandboxUnavailable("there is no bwrap; on Debian: apt-get install bubblewrap")
    options = (
        "--unshare-user --unshare-all --disable-userns --cap-drop ALL --die-with-parent "
        "--uid 65534 --gid 65534 --chdir /"
    )
    boundary = Boundary("bubblewrap", (path, *options.split(), *_mounts(), "--"), landlock=False)
    process = subprocess.run(
        [*boundary.command, *PYTHON, OUTSIDE],
        env={},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    if process.stdout.split() != ["True"] * 3:
        words = process.stderr or process.stdout
        raise SandboxUnavailable(f"bwrap does not hold here: {words.strip()[-300:]}")
    return boundary


def _mounts() -> Iterator[str]:
    """The interpreter and the libraries it loads, for reading; packages that somebody installed are left out."""
    libraries = Path(sys.base_prefix, "lib")
    for path in ("/lib", "/lib64", "/usr/lib", "/etc/ld.so.cache", str(libraries), PYTHON[0]):
        yield from ("--ro-bind-try", path, path)
    packages = Path(sysconfig.get_path("stdlib"), "site-packages")
    if packages.is_dir():
        yield from ("--tmpfs", str(packages))


def landlock() -> Boundary:
    """The kernel's Landlock alone, for machines without bubblewrap and for containers that may make no namespace."""
    return Boundary("landlock")
