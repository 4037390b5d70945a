"""The tutorial is played as a reader would: its files are written, its commands run, and each line that
it shows below a command has to be in what the command prints."""

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from kit.cli import main

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"
FENCE = re.compile(
    r'^```(?P<language>\w*)(?: title="(?P<title>[^"]+)")?\n(?P<body>.*?)^```$', re.M | re.S
)
EXPECTED_CODE = re.compile(r"#\s*ends with (\d)\s*$")
MOST_SECONDS = 120


@dataclass(frozen=True)
class Block:
    """A fenced block of the tutorial."""

    language: str
    title: str | None
    body: str
    line: int


def blocks(page: str) -> Iterator[Block]:
    for match in FENCE.finditer(page):
        line = page[: match.start()].count("\n") + 1
        yield Block(match["language"], match["title"], match["body"], line)


class Reader:
    """Somebody who types what the tutorial says."""

    def __init__(self, home: Path):
        self.folder = home
        self.printed = ""
        inherited = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        self.environment = {**inherited, "PYTHONPATH": str(ROOT), "KIT_PACE": "0"}

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def type(self, line: str) -> None:
        """Runs one line and keeps what it prints; fails when it ends with another code than the page says."""
        says = EXPECTED_CODE.search(line)
        expected = int(says[1]) if says else 0
        words = shlex.split(line, comments=True)
        if words[0] == "cd":
            self.folder = self.folder / words[1]
            return
        if words[0] == "subagent-kit":
            code, printed = self.command(words[1:])
        else:
            code, printed = self.process(words)
        self.printed += printed
        assert code == expected, f"{line}\n{printed}"

    def command(self, words: list[str]) -> tuple[int, str]:
        """The kit's own command, in this process: its imports take longer than its work."""
        printed = io.StringIO()
        with (
            mock.patch.dict(os.environ, self.environment, clear=True),
            chdir(self.folder),
            redirect_stdout(printed),
            redirect_stderr(printed),
        ):
            code = main(words)
        return code, printed.getvalue()

    def process(self, words: list[str]) -> tuple[int, str]:
        if words[0] == "python":
            words[0] = sys.executable
        ended = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=MOST_SECONDS,
        )
        return ended.returncode, ended.stdout


@pytest.mark.pages
@pytest.mark.realtime
def test_the_tutorial_prints_what_it_shows(tmp_path: Path):
    reader = Reader(tmp_path)
    shown = 0
    for block in blocks(TUTORIAL.read_text(encoding="utf-8")):
        if block.title:
            reader.write(block.title, block.body)
        elif block.language == "sh":
            reader.printed = ""
            for line in block.body.splitlines():
                reader.type(line)
        elif block.language == "text":
            for line in block.body.splitlines():
                shown += 1
                assert line in reader.printed, (
                    f"line {block.line}: {line!r} not in\n{reader.printed}"
                )
    assert shown > 20


def test_every_public_name_is_on_the_page_of_the_python_api():
    import kit

    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    described = {name.rsplit(".", 1)[1] for name in re.findall(r"^::: (\S+)$", page, re.M)}
    assert set(kit.__all__) - described - {"PATTERNS"} == set(), "not on the page"
    assert described - set(kit.__all__) == set(), "on the page and not public"
