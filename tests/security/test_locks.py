"""What is installed is what was locked: each file of each package has its hash in the lock, and installs ask for it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = (
    "requirements.txt",
    "requirements-browser.txt",
    "requirements-docs.txt",
    "benchmarks/peers/requirements.txt",
    "benchmarks/conformance/requirements.txt",
    "benchmarks/logs/requirements.txt",
)
INSTALLERS = (".ci/venv", ".ci/browser", ".ci/docs", "Dockerfile", "Makefile", "CONTRIBUTING.md")


@pytest.mark.parametrize("lock", LOCKS)
def test_each_package_of_a_lock_has_its_hashes(lock: str):
    entries = re.split(r"\n(?=[A-Za-z0-9])", (ROOT / lock).read_text())
    packages = [entry for entry in entries if re.match(r"[A-Za-z0-9]\S*==", entry)]
    bare = [entry.split()[0] for entry in packages if "--hash=sha256:" not in entry]
    assert packages and not bare


@pytest.mark.parametrize("file", INSTALLERS)
def test_whoever_installs_a_lock_asks_for_its_hashes(file: str):
    text = (ROOT / file).read_text().replace("\\\n", " ")
    installs = re.findall(r"^.*pip install[^&;\n]* -r .*$", text, re.MULTILINE)
    assert installs and all("--require-hashes" in line for line in installs)


def test_the_lock_is_made_with_hashes():
    compiles = re.findall(r"uv pip compile[^\n]*", (ROOT / "Makefile").read_text())
    assert len(compiles) == len(LOCKS) and all("--generate-hashes" in line for line in compiles)
