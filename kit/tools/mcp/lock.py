"""mcp.lock beside deck.yaml: the tools of each MCP server as they were accepted, word by word, for
models read these words."""

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from kit.core.display.command import command
from kit.core.errors import CodeError
from kit.core.value import Value
from kit.tools.mcp.server import McpServer

LOCK = "mcp.lock"


class AcceptedTool(Value):
    """A tool of a server, as a model reads it."""

    name: str
    description: str = ""
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None


class Acceptance(Value):
    """A server as it was accepted."""

    server: dict[str, Any]
    """Its identity: the command or URL, and the names of what it is told."""
    tools: tuple[AcceptedTool, ...]


_Acceptances = TypeAdapter(dict[str, Acceptance])


def read_lock(folder: Path) -> Mapping[str, Acceptance]:
    """Server name -> what was accepted; empty where there is no lock. Raises CodeError for one that cannot be read."""
    path = folder / LOCK
    try:
        if path.exists():
            return _Acceptances.validate_json(path.read_bytes())
        return {}
    except (OSError, ValidationError) as error:
        raise CodeError(
            f"{path} cannot be read; delete it, and accept the servers again: {accepting(folder)}"
        ) from error


def write_lock(folder: Path, servers: Mapping[str, Acceptance]) -> None:
    """Writes the lock. It is ASCII, so that no letter in it looks like another one."""
    (folder / LOCK).write_text(
        "\n".join(_lines(_Acceptances.dump_python(dict(servers), mode="json"))) + "\n"
    )


def accepting(folder: Path) -> str:
    """The command that accepts what the servers of a deck offer now."""
    return command("check", "--trust", folder)


def lock_fault(
    name: str, server: McpServer, lock: Mapping[str, Acceptance], folder: Path
) -> str | None:
    """What keeps a server from being used: it, or what is run or called for it, was never accepted.
    None where it was."""
    trust = f"if you trust it: {accepting(folder)}"
    if name not in lock:
        return f"MCP server {name!r} {server.describe(folder)}, and nobody has accepted its tools; {trust}"
    if lock[name].server == server.identity:
        return None
    changes = "\n".join(_difference(lock[name].server, server.identity))
    return f"MCP server {name!r} is not the one that was accepted; {trust}\n{changes}"


def tools_difference(old: Sequence[AcceptedTool], new: Sequence[AcceptedTool]) -> str:
    """How the tools differ, as a unified diff in ASCII; empty where they do not. The order of tools does not count."""
    return "\n".join(_difference(_by_name(old), _by_name(new)))


def _by_name(tools: Sequence[AcceptedTool]) -> dict[str, Any]:
    return {tool.name: tool.model_dump(mode="json", exclude={"name"}) for tool in tools}


def _difference(old: object, new: object) -> Iterator[str]:
    yield from unified_diff(_lines(old), _lines(new), "accepted", "now", lineterm="", n=2)


def _lines(value: object) -> list[str]:
    return json.dumps(value, indent=1, sort_keys=True).splitlines()
