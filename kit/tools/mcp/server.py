"""An MCP server as deck.yaml names it: what is run or called, what it is told, and how long and how
much it may answer."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from kit.core.value import Value

_INTERPRETER = re.compile(r"python[\d.]*|node|bash|sh|ruby")
_SCRIPTS = frozenset({".py", ".js", ".mjs", ".cjs", ".sh", ".rb"})


class McpServer(Value):
    """A server that is run as a command, or called at a URL."""

    command: tuple[str, ...] = ()
    """What is run in the deck's folder and speaks MCP over its standard input and output: a program and its arguments.

    `python` is the one that runs the kit."""
    url: str | None = None
    """Where it is called instead: an endpoint of streamable HTTP. `$NAME` stands for the
    environment variable of that name."""
    headers: dict[str, str] = {}
    """Sent with every request to the URL; variables as in the URL."""
    environment: tuple[Annotated[str, Field(pattern=r"^\w+$")], ...] = ()
    """The environment variables that the command is given, beside PATH, HOME, LANG and USER."""
    connect_ms: int = Field(default=20_000, gt=0)
    """Milliseconds until it has to have said which tools it has."""
    timeout_ms: int = Field(default=30_000, gt=0)
    """Milliseconds a call of one of its tools may take, where neither deck.yaml nor a card says
    otherwise (docs/tools.md)."""
    most_bytes: int = Field(default=1_000_000, gt=0)
    """Bytes of one message from it; a longer one is cut off, and is a fault.

    A message is read on the event loop, which takes some 25 ms for each MB. A service of skills may send
    `kit.tools.skills.MOST_BYTES` where its deck says nothing."""

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("give it either a `command`, as a list, or a `url`")
        if self.url and (
            self.environment
            or not (self.url.startswith("$") or urlsplit(self.url).scheme in ("http", "https"))
        ):
            raise ValueError(
                "a `url` begins with http:// or https:// and takes `headers`; `environment` is for a command"
            )
        if self.command and self.headers:
            raise ValueError("`headers` are for a `url`; a command takes `environment`")
        if not all(Template(text).is_valid() for text in self._templates):
            raise ValueError(
                "a URL or header names a variable as $NAME or ${NAME}; write $$ for a dollar sign"
            )
        return self

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables whose values it is told."""
        names = (name for text in self._templates for name in Template(text).get_identifiers())
        return tuple(dict.fromkeys((*self.environment, *names)))

    @property
    def _templates(self) -> tuple[str, ...]:
        return (self.url or "", *self.headers.values())

    def secrets(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """The values of these variables that are set."""
        values = [environment.get(name, "").strip() for name in self.variables]
        return tuple(filter(None, values))

    @property
    def identity(self) -> dict[str, Any]:
        """What was accepted of it beside its tools: what is run or called, and what it is told."""
        return self.model_dump(
            mode="json", include={"command", "url", "headers", "environment"}, exclude_defaults=True
        )

    def missing_file(self, folder: Path) -> str | None:
        """The program or script that its command names and that is not there, seen from the deck's folder.

        A program without a path lies on PATH. Arguments of other programs may name anything.
        """
        if not self.command:
            return None
        program, *arguments = self.command
        files: list[str] = []
        if "/" in program:
            files.append(program)
        if _INTERPRETER.fullmatch(Path(program).name):
            for argument in arguments:
                if argument in ("-m", "-c"):
                    break
                if Path(argument).suffix in _SCRIPTS:
                    files.append(argument)
                    break
        for file in files:
            if not (folder / file).is_file():
                return file
        return None

    def describe(self, folder: Path) -> str:
        """What using it does, for a person who decides whether to trust it; no letter of the deck's
        moves the terminal."""
        names = ", ".join(self.variables)
        # A deck's text may hold escape sequences, which would rewrite what the terminal shows.
        address = (self.url or shlex.join(self.command)).encode("unicode_escape").decode()
        words = f"calls {address}" if self.url else f"runs {address} in {folder}"
        verb = "sends" if self.url else "gives"
        return f"{words} and {verb} it {names}" if names else words
