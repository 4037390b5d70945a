"""Records how model calls ended and plays it back; keyed by what was asked and where in the turn, never by arrival order."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from langchain_core.messages import AIMessage, BaseMessage, message_to_dict, messages_from_dict

from kit.core.errors import CassetteError, KitError
from kit.core.value import Value
from kit.runtime.budget import OverBudget
from kit.runtime.narration import Narrating, heard

_MEANT: Mapping[str, type[BaseException]] = {
    "TimeoutError": TimeoutError,
    "CancelledError": asyncio.CancelledError,
    "OverBudget": OverBudget,
}
"""Exceptions that a turn tells apart from others; of the rest it only tells the name."""


class Broken(Value):
    """How a call ended that gave no reply."""

    kind: str
    """Name of the exception's class; STOPPED for a call that whoever made it gave up."""
    text: str = ""


STOPPED = "stopped"


class Take(Value):
    """One recorded call: the request's hash, the place it was asked from, and the message as it came."""

    key: str
    request: str
    """Readable tail of the request, for a person who must find out why a replay no longer fits."""
    message: dict[str, Any] = {}
    pieces: tuple[str, ...] = ()
    """Text as it streamed."""
    seconds: float = 0.0
    broken: Broken | None = None
    """Set when there is no message."""
    begun: bool = True
    """Whether anything had arrived."""
    said: int = 0
    """Characters that had, where there is no message."""


def request_key(place: str, model: str, messages: Sequence[BaseMessage]) -> str:
    """`place#hash`: the call path, then a hash over the model and every message (ids of tool calls aside)."""
    parts: list[Any] = [model]
    for message in messages:
        calls = [(call["name"], call["args"]) for call in message.tool_calls] if isinstance(message, AIMessage) else []
        content: Any = message.content
        parts.append([message.type, content, calls])
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
    return f"{place}#{digest[:16]}"


class Cassette:
    """One file, one run. `record` writes what models said, `replay` answers from it and calls no model."""

    def __init__(self, path: Path | str, mode: Literal["record", "replay"]):
        self.path, self.mode = Path(path), mode
        self._takes: dict[str, Take] = {}
        if mode == "replay":
            self._takes = _read(self.path)

    def find(self, key: str, request: str) -> Take | None:
        """The take for a request when replaying; None when recording.

        Raises CassetteError when the recording does not hold this request.
        """
        if self.mode == "record":
            return None
        take = self._takes.get(key)
        if take is None:
            raise CassetteError(self._misfit(key, request))
        return take

    def keep(self, key: str, request: str, message: AIMessage, pieces: Sequence[str], seconds: float) -> None:
        """Remembers a reply; `save` writes the file."""
        self._takes[key] = Take(key=key, request=request, message=message_to_dict(message), pieces=tuple(pieces), seconds=seconds)

    def keep_fault(self, key: str, request: str, error: BaseException, pieces: Sequence[str], begun: bool, said: int) -> None:
        """Remembers a call that failed or was given up, so that the turn can fail in the same way again.

        A KitError is not kept: it speaks of this installation, and the next one has its own.
        """
        if not isinstance(error, KitError):
            task = asyncio.current_task()
            stopped = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
            broken = Broken(kind=STOPPED if stopped else type(error).__name__, text=str(error))
            self._takes[key] = Take(key=key, request=request, pieces=tuple(pieces), broken=broken, begun=begun, said=said)

    def save(self) -> None:
        """Writes the recording, sorted by place, one take a line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [self._takes[key].model_dump_json() for key in sorted(self._takes)]
        self.path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _misfit(self, key: str, request: str) -> str:
        place = key.partition("#")[0]
        told = [take.request for known, take in self._takes.items() if known.partition("#")[0] == place]
        heard = f"the recording asked there: {told[0]!r}" if told else "the recording was never asked from there"
        return f"{self.path}: no reply recorded for {place}; asked now: {request!r}; {heard}. Record it again to refresh."


async def replay(take: Take, hear: Callable[[str], None] | None) -> AIMessage:
    """What was recorded: the reply, or the failure. A call that was given up waits to be given up again, by the same deadline."""
    if hear is not None:
        hear = heard(hear)
        for piece in take.pieces:
            hear(piece)
    if take.broken is not None:
        if take.broken.kind == STOPPED:
            await asyncio.get_running_loop().create_future()
        known = _MEANT.get(take.broken.kind) or type(take.broken.kind, (Exception,), {})
        raise known(take.broken.text)
    message = cast("AIMessage", messages_from_dict([take.message])[0])
    if isinstance(hear, Narrating):
        hear.end()
        if message.tool_calls:
            hear("")
    return message


def _read(path: Path) -> dict[str, Take]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise CassetteError(f"cannot read the recording {path}: {error.strerror}; record it first") from error
    takes: dict[str, Take] = {}
    for number, line in enumerate(lines, 1):
        try:
            take = Take.model_validate_json(line)
        except ValueError as error:
            raise CassetteError(f"{path}:{number}: this line is not a recorded reply; record the file again") from error
        takes[take.key] = take
    return takes
