"""The system calls that a script keeps, as the program that Linux's seccomp runs before each call."""

import platform
import struct

from kit.core.errors import KitError

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CALLS = {
    "write": (1, 64),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "futex": (202, 98),
    "clock_gettime": (228, 113),
    "clock_nanosleep": (230, 115),
    "restart_syscall": (219, 128),
    "gettimeofday": (96, 169),
    "getrandom": (318, 278),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
"""Call -> its number on each architecture. Whatever is not listed fails with EACCES, which Python
raises as PermissionError."""

LOAD = 0x20
JUMP_IF_EQUAL = 0x15
RETURN = 0x06
NUMBER_AT = 0
ARCHITECTURE_AT = 4
ALLOW = 0x7FFF0000
REFUSE = 0x00050000 | 13
KILL = 0x80000000


def filter_program(machine: str | None = None) -> bytes:
    """The program for an architecture, this machine's when none is named. Raises KitError for one
    whose calls are not known."""
    machine = machine or platform.machine()
    if machine not in ARCHITECTURES:
        raise KitError(
            f"the system calls of {machine or 'this machine'} are not known; run it on {' or '.join(ARCHITECTURES)}"
        )
    column = list(ARCHITECTURES).index(machine)
    # Another architecture's numbers mean other calls, so a call by those ends the process.
    steps = [
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (JUMP_IF_EQUAL, 1, 0, ARCHITECTURES[machine]),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER_AT),
    ]
    # Each jump leads over those that are left, and over REFUSE, to ALLOW.
    distance = len(CALLS)
    for numbers in CALLS.values():
        steps.append((JUMP_IF_EQUAL, distance, 0, numbers[column]))
        distance -= 1
    steps += [(RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
