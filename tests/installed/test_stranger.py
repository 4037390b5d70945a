"""The whole way of a stranger: a wheel in an environment of its own, a project, its tool, a
question, the app, a verdict."""

import email
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.effort import allowance

pytestmark = pytest.mark.installed
ROOT = Path(__file__).resolve().parents[2]
CORE = 220e6
"""Bytes that the core may have on disk, with all it depends on: SQLAlchemy and Alembic took 20 of 214 million."""
BUDGET = 180.0
"""Seconds for the whole way, on a machine that has nothing else to do."""
BEGAN = time.monotonic()
PAGE = """
import sys
from streamlit.testing.v1 import AppTest
from kit.home import HOME
page = AppTest.from_file(str(HOME / "app.py"), default_timeout=3000).run()
assert not page.exception and not page.error, (page.exception, page.error)
page.chat_input[0].set_value("Which laptop does Ana have?").run()
assert not page.exception, page.exception
print("\\n".join(one.value for one in page.markdown))
"""


def uv(*words: str | Path) -> None:
    """Runs uv. Without a registry the test is skipped, except where CI must run it."""
    command = [sys.executable, "-m", "uv", *map(str, words)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "UV_LINK_MODE": "copy"},
        capture_output=True,
        text=True,
    )
    if done.returncode and os.environ.get("CI") != "true":
        pytest.skip(
            f"uv {words[0]} did not succeed, is a registry in reach? {done.stderr.strip()[-300:]}"
        )
    assert done.returncode == 0, done.stderr


class Stranger:
    """Somebody with an environment and a folder, and nothing of the checkout."""

    def __init__(self, home: Path):
        self.home, self.folder, self.bin = home, home, home / "venv" / "bin"

    def run(self, *words: str) -> str:
        """Runs a command of the environment in the folder; returns what it prints."""
        command = [str(self.bin / words[0]), *words[1:]]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.home)}

    @property
    def files(self) -> set[Path]:
        """What is installed, without what Python compiles."""
        return {
            path
            for path in (self.home / "venv").rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        }


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Stranger:
    """With the core installed from a wheel."""
    home = tmp_path_factory.mktemp("stranger")
    uv("build", "--quiet", "--wheel", "--out-dir", home / "wheel", ROOT)
    uv("venv", "--quiet", "--python", sys.executable, home / "venv")
    install(Stranger(home), "")
    return Stranger(home)


def install(stranger: Stranger, extras: str, *more: str) -> None:
    """Installs the wheel with these extras, in the versions of the lock."""
    (wheel,) = (stranger.home / "wheel").glob("*.whl")
    constraints = ("--constraint", ROOT / "requirements.txt")
    uv(
        "pip",
        "install",
        "--quiet",
        "--python",
        stranger.bin / "python",
        *constraints,
        f"{wheel}{extras}",
        *more,
    )


@contextmanager
def serving(stranger: Stranger) -> Generator[str]:
    """The app on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(stranger.bin / "subagent-kit"), "app", "--port", str(port)]
    with subprocess.Popen(
        command, cwd=stranger.folder, env=stranger.environment, stderr=subprocess.DEVNULL
    ) as app:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            app.terminate()


def answer(url: str) -> str:
    """What is served there, once it is."""
    for _ in range(300):
        try:
            with urllib.request.urlopen(url, timeout=5) as response:
                return response.read().decode()
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"nothing answers at {url}")


def test_the_package_says_what_it_is(stranger: Stranger):
    (wheel,) = (stranger.home / "wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (entry,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(entry))
        assert "kit/py.typed" in archive.namelist()
    assert metadata["Name"] == "subagent-kit"
    assert metadata["Author"] is None
    assert metadata["Author-email"] is None
    assert metadata.get_all("Project-URL") is None
    classifiers = metadata.get_all("Classifier") or []
    assert "Typing :: Typed" in classifiers
    assert "Programming Language :: Python :: 3.11" in classifiers
    assert stranger.run("subagent-kit", "--version") == f"subagent-kit {metadata['Version']}\n"


def test_the_core_is_small_and_answers(stranger: Stranger):
    size = sum(path.stat().st_size for path in stranger.files)
    assert size < CORE, f"{size / 1e6:.0f} MB"
    assert "4,975 points" in stranger.run("subagent-kit", "ask", "how many points do I have?")
    assert (stranger.folder / ".kit" / "kit.db").is_file()


@pytest.mark.req("K-3")
def test_a_project_takes_a_tool_of_ones_own_to_a_verdict(stranger: Stranger):
    install(stranger, "[app,bench]", "pytest")
    before = stranger.files
    stranger.run("subagent-kit", "new", "helpdesk")
    stranger.folder = stranger.home / "helpdesk"
    tools = stranger.folder / "deck" / "tools.py"
    tools.write_text(tools.read_text().replace("Model 14", "Model 18"))
    assert "0 warnings" in stranger.run("subagent-kit", "check")
    assert "Model 18" in stranger.run("subagent-kit", "ask", "Which laptop does Ana have?")
    assert "cannot tell: " in stranger.run("subagent-kit", "grid")
    assert (
        '"revision": "0.1.0"'
        in (stranger.folder / ".kit/grids/helpdesk/provenance.json").read_text()
    )
    assert re.search(r"written +ok", stranger.run("subagent-kit", "doctor"))
    with serving(stranger) as url:
        assert answer(f"{url}/_stcore/health") == "ok" and "<title>" in answer(url)
    assert "Model 18" in stranger.run("python", "-c", PAGE)
    tests = stranger.folder / "test_project.py"
    tests.write_text(tests.read_text().replace("Model 14", "Model 18"))
    assert "2 passed" in stranger.run("python", "-m", "pytest", "-q", "-c", os.devnull)
    assert stranger.files == before, "something was written beside the installed package"
    assert time.monotonic() - BEGAN < allowance(BUDGET)
