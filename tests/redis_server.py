"""A Redis of a test's own, on a free port of this machine; without the program the test is skipped, in CI it fails."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager

import pytest

LACKS = "there is no redis-server; on Debian: apt-get install redis-server"


class RedisServer:
    """A server that may be killed and started again at the same address, with what it was told kept in a file."""

    def __init__(self, folder: str):
        self._folder = folder
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and returns once it can be asked."""
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", self._folder]
        options += ["--save", "", "--appendonly", "yes", "--appendfsync", "no"]
        # So that a dump of it can be searched.
        options += ["--rdbcompression", "no"]
        self._process = subprocess.Popen(
            ["redis-server", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + 30
        while self.ask("PING") != "+PONG":
            assert time.monotonic() < until, "redis-server does not answer"
            time.sleep(0.02)

    def ask(self, command: str) -> str:
        """Sends one command and returns the first line of what comes back; empty where nobody answers."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                connection.sendall(f"{command}\r\n".encode())
                return connection.recv(4096).decode().splitlines()[0]
        except (OSError, IndexError):
            return ""

    def keys(self, pattern: str) -> list[str]:
        """Returns the names of its keys that fit a pattern."""
        return self._command("--raw", "KEYS", pattern).split()

    def content(self) -> str:
        """Returns all that it holds, as far as that is text."""
        texts: list[str] = []
        for key in self.keys("*"):
            texts.append(key)
            texts.append(self._command("--no-raw", "DUMP", key))
        return "\n".join(texts)

    def _command(self, *arguments: str) -> str:
        command = ["redis-cli", "-p", str(self.port), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def kill(self) -> None:
        """Kills it as a machine does that loses its power; one that is down stays down."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextmanager
    def frozen(self) -> Generator[None]:
        """Has it answer nobody for the time of the block, though its port is open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server for the tests of a module, which share what it holds."""
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@contextmanager
def redis_server(folder: object) -> Generator[RedisServer]:
    """Runs a server over a folder until the end of the block."""
    if shutil.which("redis-server") is None:
        if os.environ.get("CI"):
            pytest.fail(LACKS)
        pytest.skip(LACKS)
    server = RedisServer(str(folder))
    server.start()
    try:
        yield server
    finally:
        server.kill()
