"""Which agent gained which tool between two revisions of the cards, and whether the gain is gated."""

import datetime
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from kit.compose.yaml_loader import load_yaml
from kit.core.card import ToolGrant
from kit.core.errors import KitError

GATED_DAYS = 14
"""How long a new tool stays behind a flag that is off by default."""


class RevisionError(KitError):
    """The cards of a revision cannot be read."""


@dataclass(frozen=True, slots=True)
class Gain:
    """A tool that an agent has now and had not before."""

    agent: str
    tool: str
    grant: ToolGrant | None
    fault: str | None
    """Why the gain is not gated; None when it is."""
    newcomer: bool = False
    """The agent is new itself: promotion is its gate, not a grant for each tool."""

    def line(self) -> str:
        """It in words, fit for a terminal."""
        undated = "with a new agent" if self.newcomer else "undated"
        since = f"since {self.grant.since}, flag {self.grant.flag or 'none'}" if self.grant else undated
        return f"{self.agent:18} + {self.tool:24} {since}" + (f" | not gated: {self.fault}" if self.fault else "")


def gained(folder: Path, old: str, new: str) -> tuple[Gain, ...]:
    """Compares the cards in `folder` at two git revisions. Raises RevisionError, saying what to do, where git cannot."""
    top = Path(_git(folder, "rev-parse", "--show-toplevel").strip())
    place = folder.resolve().relative_to(top.resolve()).as_posix()
    before, after = _cards(top, place, old), _cards(top, place, new)
    flags = _flags(top, place, new)
    day = datetime.date.fromisoformat(_git(top, "show", "-s", "--format=%cs", f"{new}^{{commit}}").strip())
    gains: list[Gain] = []
    for agent, card in sorted(after.items()):
        earlier_tools = _tools(before.get(agent, {}))
        for tool in _tools(card):
            if tool not in earlier_tools:
                raw = cast("dict[str, Any]", card.get("tool_grants") or {}).get(tool)
                grant = None if raw is None else ToolGrant.model_validate(raw)
                newcomer = agent not in before
                fault = None if newcomer and grant is None else _fault(grant, flags, day)
                gains.append(Gain(agent, tool, grant, fault, newcomer))
    return tuple(gains)


def print_gained(folder: Path, old: str, new: str) -> int:
    """Prints a line for each gain and their number; returns 1 when one is not gated. Raises RevisionError."""
    gains = gained(folder, old, new)
    loose = sum(1 for gain in gains if gain.fault)
    summary = f"{len(gains)} tools gained, {loose} of them not gated"
    print(*[gain.line() for gain in gains], f"{folder.name}, {old} to {new}: {summary}", sep="\n")
    return int(loose > 0)


def _fault(grant: ToolGrant | None, flags: dict[str, Any], day: datetime.date) -> str | None:
    if grant is None:
        return "no grant: put tool_grants with since and flag on the card"
    if (day - grant.since).days >= GATED_DAYS:
        return None
    if grant.flag is None:
        return f"no flag: a new tool stays behind one for {GATED_DAYS} days"
    return f"flag {grant.flag!r} is on by default: turn it off in settings/default.yaml" if flags.get(grant.flag) else None


def _cards(top: Path, place: str, revision: str) -> dict[str, dict[str, Any]]:
    names = _git(top, "ls-tree", "-r", "--name-only", revision, "--", place).splitlines()
    files = (name for name in names if name.endswith(".yaml") and not name.endswith("/deck.yaml"))
    cards = (_parse(top, revision, name) for name in files)
    return {str(card["id"]): card for card in cards if "id" in card and "description" in card}


def _flags(top: Path, place: str, revision: str) -> dict[str, Any]:
    root = str(Path(place).parent)
    name = ("" if root == "." else f"{root}/") + "settings/default.yaml"
    listing = _git(top, "ls-tree", "-r", "--name-only", revision, "--", name).strip()
    return cast("dict[str, Any]", _parse(top, revision, name).get("flags") or {}) if listing else {}


def _parse(top: Path, revision: str, name: str) -> dict[str, Any]:
    try:
        value: Any = load_yaml(_git(top, "show", f"{revision}:{name}"))
    except yaml.YAMLError as error:
        raise RevisionError(f"{name} at {revision} is no YAML: {error}") from error
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _tools(card: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(tool) for tool in cast("list[Any]", card.get("tools") or ()))


def _git(folder: Path, *arguments: str) -> str:
    try:
        process = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise RevisionError("git is not installed; `gained` compares two git revisions and needs it") from error
    if process.returncode:
        complaint = next(iter(process.stderr.strip().splitlines()), "no reason given")
        if "not a git repository" in complaint:
            raise RevisionError(f"{folder} is in no git checkout; `gained` compares two revisions of one, so run it there")
        raise RevisionError(f"git cannot read that: {complaint}; check both revisions and the folder")
    return process.stdout
