"""A PostgreSQL server for tests: one for all workers of a run, in a temporary folder, stopped when the run ends."""

import fcntl
import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from functools import cache
from pathlib import Path

import pytest

PASSWORD = "correct-horse/battery@staple"
ENCODED = "correct-horse%2Fbattery%40staple"
FOLDER = "KIT_TEST_POSTGRES"
"""The variable by which workers know the folder of their run."""


def programs() -> Path | None:
    """The folder of the newest server on this machine."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
    )
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


class Server:
    """A server in a folder, over a socket there and a port of this machine."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.data = folder / "data"

    @property
    def port(self) -> int:
        return int((self.folder / "port").read_text())

    def make(self) -> None:
        """Makes and starts it where no other worker has."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (self.folder / "port").exists():
                return
            os.chmod(self.folder, 0o777)
            password = self.folder / "password"
            password.write_text(PASSWORD)
            self._run(
                *(
                    "initdb",
                    "-D",
                    str(self.data),
                    "-U",
                    "kit",
                    "-E",
                    "UTF8",
                    "--locale=C.UTF-8",
                    "-N",
                ),
                *("--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={password}"),
            )
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            with (self.data / "postgresql.conf").open("a") as settings:
                settings.write(
                    f"port = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{self.folder}'\n"
                    "fsync = off\nfull_page_writes = off\nsynchronous_commit = off\nautovacuum = off\n"
                    "shared_buffers = 32MB\nmax_connections = 200\n"
                )
            self.start()
            (self.folder / "port").write_text(str(port))

    def start(self) -> None:
        self._run("pg_ctl", "-D", str(self.data), "-w", "-l", str(self.folder / "log"), "start")

    def stop(self) -> None:
        """Stops it at once, as a fault would."""
        self._run("pg_ctl", "-D", str(self.data), "-m", "immediate", "-w", "stop")

    def remove(self) -> None:
        """Stops it, where it runs, and removes its folder."""
        if (self.data / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, schema: str, secret: bool = False) -> str:
        """The URL of a schema of its own; with a password over the port, else over the socket."""
        place = f"kit:{ENCODED}@127.0.0.1:{self.port}/postgres?"
        if not secret:
            place = f"kit@/postgres?host={self.folder}&port={self.port}&"
        return f"postgresql+psycopg://{place}options=-csearch_path%3D{schema}"

    def new_url(self, secret: bool = False) -> str:
        """The URL of an empty schema that nobody else has."""
        schema = f"s{uuid.uuid4().hex}"
        self.sql(f"CREATE SCHEMA {schema}")
        return self.url(schema, secret)

    def sql(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(
            host=str(self.folder), port=self.port, user="kit", dbname="postgres", autocommit=True
        ) as connection:
            connection.execute(statement.encode())

    def _run(self, program: str, *arguments: str) -> None:
        folder = programs()
        assert folder is not None
        # PostgreSQL refuses to run as root.
        user = "nobody" if os.geteuid() == 0 else None
        groups = [] if user else None
        run = subprocess.run(
            [str(folder / program), *arguments],
            cwd=self.folder,
            user=user,
            group="nogroup" if user else None,
            extra_groups=groups,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
        assert run.returncode == 0, run.stderr


@cache
def server() -> Server:
    """The server of this run; skips the test where the machine has none."""
    if programs() is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI has to have PostgreSQL: apt-get install postgresql")
        pytest.skip("no PostgreSQL on this machine (apt-get install postgresql)")
    made = Server(Path(os.environ[FOLDER]))
    made.make()
    return made


def begin_run() -> None:
    """Says to the workers of this run where their server's folder is."""
    os.environ[FOLDER] = tempfile.mkdtemp(prefix="kit-postgres-")


def end_run() -> None:
    """Stops the server, where a test made one."""
    Server(Path(os.environ.pop(FOLDER))).remove()
