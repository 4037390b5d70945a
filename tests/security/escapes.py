"""Ways out of a sandbox, as expressions that are true where one is open; harmless, for they are run
where nothing holds too."""

import platform
from collections.abc import Iterable

X86 = platform.machine() == "x86_64"
ADD_KEY, BPF, PERF_EVENT_OPEN, SETTIMEOFDAY = (248, 321, 298, 164) if X86 else (217, 280, 241, 170)
PRELUDE = """
import ctypes, os
libc = ctypes.CDLL(None)
OWN, BUFFER = os.getpid(), ctypes.create_string_buffer(8)
VECTOR = (ctypes.c_void_p * 2)(ctypes.addressof(BUFFER), 8)
"""

FILES = {
    "read a file": "os.open(SECRET, os.O_RDONLY) >= 0",
    "read a file by the class below open": "__import__('_io').FileIO(SECRET).read() != b''",
    "read a file by libc": "libc.fopen64(SECRET.encode(), b'r') != 0",
    "read a key of ssh": "os.open(SSH, os.O_RDONLY) >= 0",
    "read through a symbolic link": "os.open(LINK, os.O_RDONLY) >= 0",
    "list a folder": "os.listdir(FOLDER) != []",
    "write a file": "os.open(FOLDER + '/new', os.O_CREAT | os.O_WRONLY) >= 0",
    "make a symbolic link": "os.symlink(SECRET, FOLDER + '/symbolic') is None",
    "make a hard link": "os.link(SECRET, FOLDER + '/hard') is None",
    "delete a file": "os.unlink(FOLDER + '/victim') is None",
    "make a named pipe": "os.mkfifo(FOLDER + '/pipe') is None",
    "write to the interpreter's files": "os.open(os.__file__, os.O_WRONLY | os.O_APPEND) >= 0",
    "read the environment of the host": "os.open(f'/proc/{HOST}/environ', os.O_RDONLY) >= 0",
    "read /proc of itself": "os.open('/proc/self/maps', os.O_RDONLY) >= 0",
    "open a device": "os.open('/dev/zero', os.O_RDONLY) >= 0",
    "start a program": "os.execv('/bin/echo', ['echo', 'ESCAPED'])",
}
"""What bubblewrap and Landlock each hold alone, without seccomp."""
OTHERS = {
    "learn of a file": "os.stat(SECRET).st_size > 0",
    "find a key in the environment": "'sk-of-the-host' in os.environ.values()",
    "find a key in the memory of libc": "libc.getenv(b'HOST_KEY') != 0",
    "read an inherited descriptor": "os.read(DESCRIPTOR, 1) != b''",
    "read its own standard input again": "os.dup(0) >= 0",
    "open a TCP socket": "libc.socket(2, 1, 0) >= 0",
    "open a UDP socket": "libc.socket(2, 2, 0) >= 0",
    "open a unix socket": "libc.socket(1, 1, 0) >= 0",
    "open a netlink socket": "libc.socket(16, 3, 0) >= 0",
    "fork": "(lambda child: child > 0 or (child == 0 and os._exit(0)))(libc.fork())",
    "start a thread": "__import__('_thread').start_new_thread(int, ()) != 0",
    "be debugged": "libc.ptrace(0, 0, 0, 0) == 0",
    "read the memory of a process": "libc.process_vm_readv(OWN, VECTOR, 1, VECTOR, 1, 0) >= 0",
    "signal the host": "os.kill(HOST, 0) is None",
    "end another process": "os.kill(VICTIM, 15) is None",
    "have the kernel signal another process": "libc.fcntl(1, 8, VICTIM) == 0",
    "hold another process by a descriptor": "libc.syscall(434, HOST, 0) >= 0",
    "put a character into a terminal": "any(libc.ioctl(1, call, VECTOR) >= 0 for call in (0x5412, 0x541B))",
    "make a file in memory": "libc.memfd_create(b'x', 0) >= 0",
    "set up io_uring": "libc.syscall(425, 1, ctypes.create_string_buffer(256)) >= 0",
    "make a namespace": "libc.unshare(0x10000000) == 0",
    "mount": "libc.unshare(0x10020000) == 0 and libc.mount(b'x', b'/tmp', b'tmpfs', 0, None) == 0",
    "add to the keyring of the kernel": f"libc.syscall({ADD_KEY}, b'user', b'kit', b'x', 1, -1) >= 0",
    "load a program into the kernel": f"libc.syscall({BPF}, 0, (ctypes.c_uint32 * 32)(2, 4, 4, 1), 128) >= 0",
    "watch the processor": f"libc.syscall({PERF_EVENT_OPEN}, (ctypes.c_uint32 * 32)(1, 112), 0, -1, -1, 0) >= 0",
    "change who it is": "libc.setresuid(-1, -1, -1) == 0",
    "change how it is run": "libc.personality(0xFFFFFFFF) >= 0",
    "change what it may do": "libc.prctl(4, 1, 0, 0, 0) == 0",
    "change its limits": "__import__('resource').setrlimit(4, (0, 0)) is None",
    "set the clock": f"libc.syscall({SETTIMEOFDAY}, None, None) == 0",
    "choose its processors": "libc.sched_setaffinity(0, 128, ctypes.create_string_buffer(b'\\xff' * 128)) == 0",
    "share memory": "(lambda key: key >= 0 and libc.shmctl(key, 0, None) == 0)(libc.shmget(0, 4096, 0o600))",
    "set an alarm": "libc.alarm(0) == 0 and libc.setitimer(0, ctypes.create_string_buffer(32), None) == 0",
    "leave its folder": "os.chdir(FOLDER) is None",
    "take more memory than it may": "len(bytearray(640 * 2**20)) > 0",
}
if X86:
    OTHERS["call the kernel as 32-bit code does"] = (
        "(setattr(libc.mmap, 'restype', ctypes.c_void_p), page := libc.mmap(None, 4096, 7, 34, -1, 0), "
        "ctypes.memmove(page, b'\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3', 8), "
        "ctypes.CFUNCTYPE(ctypes.c_int)(page)() > 0)[-1]"
    )
ESCAPES = FILES | OTHERS
OF_SOME_HOSTS = {
    "set up io_uring", "make a namespace", "mount", "add to the keyring of "
                                                    "the kernel", "load a program into the kernel",
    "watch the processor", "be debugged", "call the kernel as 32-bit code does", "write to the interpreter's files",
}  # fmt: skip
"""What a host may refuse everybody, or everybody but root."""


KILLED = "call the kernel as 32-bit code does"
"""What seccomp ends the script for: the last of the list, so that the others have been tried by then."""

ALONE = [
    "start a program",
    "end another process",
    "be debugged",
    "make a namespace",
    "mount",
    *([KILLED] if X86 else []),
]
"""After these, where nothing holds, a script is another program, stands still at the next signal or is elsewhere."""


def script(names: Iterable[str], **places: object) -> str:
    """The script of escapes: of each it prints the name, and ESCAPED, held, or the name of the error.
    `places` are the names that it uses."""
    lines = [f"{key} = {value!r}\n" for key, value in places.items()]
    for name in names:
        lines.append(
            f"try: print({name!r}, 'ESCAPED' if {ESCAPES[name]} else 'held', flush=True)\n"
        )
        lines.append(
            f"except BaseException as error: print({name!r}, type(error).__name__, flush=True)\n"
        )
    return PRELUDE + "".join(lines)


def verdicts(output: str) -> dict[str, str]:
    """Escape -> what became of it."""
    told: dict[str, str] = {}
    for line in output.splitlines():
        name, _, verdict = line.rpartition(" ")
        told[name] = verdict
    return told
