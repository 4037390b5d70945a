"""A file of recorded calls: how calls of models and tools ended, keyed by what was asked and where,
never by arrival order.

The model's key is a part of what was asked: a recording that is refreshed on another model calls that one anew, and
keeps the calls of tools that are asked the same.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kit.core.display.command import command
from kit.core.errors import CassetteError, KitError
from kit.core.secret import holds_secret, scrubbed
from kit.runtime.recording.player import Player
from kit.runtime.recording.recorded_call import (
    Header,
    Key,
    Mode,
    RecordedCall,
    Request,
    digest,
    failure_of,
    key_of,
    lines_of,
    read,
)
from kit.tools.tool import ToolResult


@dataclass
class _Run:
    """What one run does with the file, shared by all its tracks."""

    header: Header
    current: set[Key] = field(default_factory=set[Key])
    """Calls that this run asked for, or recorded."""
    tracks: set[str] = field(default_factory=set[str])
    """Tracks that this run plays."""


class Cassette(Player):
    """One file, one run; a grid gives each of its cells a track of the same file.

    `replay` answers from the file and calls nothing, `record` calls everything, `refresh` calls
    what the file does not hold and keeps the rest, but for what an endpoint refused. What a track
    recorded before and is not asked any more goes when the file is written; tracks that were not
    played stay. Keys are scrubbed: those that `begin` is told of, and what looks like one.
    """

    def __init__(
        self,
        path: Path | str,
        mode: Mode,
        *,
        again: str = "record it again, or refresh it",
    ):
        """`again`: what to run when the recording does not fit.

        Raises CassetteError, with file and line, for a file that is missing or broken; to record
        over one, neither matters.
        """
        self.path = Path(path)
        header = Header()
        calls: dict[Key, RecordedCall] = {}
        if mode == "record":
            header, calls = _read_leniently(self.path)
        elif mode == "replay" or self.path.exists():
            header, calls = read(self.path)
        super().__init__(mode, str(self.path), again, calls)
        if mode == "refresh":
            # It waits for nothing that it knows.
            self.pace = 0.0
        self._run = _Run(header)
        self._secrets: tuple[str, ...] = ()
        self._counts: Counter[tuple[str, str]] = Counter()

    def begin(self, today: str, model: str | None, secrets: Iterable[str | None] = ()) -> Header:
        """Notes the date and model of this run, and which keys must not be written; returns what it is to be told.

        That is the same when it records, and what stands in the file when it replays or refreshes.
        """
        self._secrets = tuple(secret for secret in secrets if secret)
        if self.mode == "record" or not self.calls:
            self._run.header = Header(today=today, model=model)
        return self._run.header

    async def sleep(self, seconds: float) -> None:
        """Waits as long as a recorded call took."""
        await asyncio.sleep(seconds * self.pace)

    def track(self, name: str) -> "Cassette":
        """Returns the same file for one of several runs in it."""
        cassette = copy(self)
        cassette._track = name
        cassette._counts = Counter()
        self._run.tracks.add(name)
        return cassette

    def find(self, call_site: str, request: Request) -> RecordedCall | None:
        """Returns the recorded call for a request; None when the call is to be made. A replay
        raises CassetteError with what changed."""
        request = self._clean(request)
        name = digest(request)
        self._run.tracks.add(self._track)
        self._counts[call_site, name] += 1
        call = self.serve(call_site, request, self._counts[call_site, name])
        if call is not None:
            self._run.current.add(key_of(call))
        return call

    def recorded_at(self, call_site: str) -> Sequence[RecordedCall]:
        """Returns the calls that were recorded from a site and not asked for yet; all, where all were."""
        calls = super().recorded_at(call_site)
        unused = [call for call in calls if key_of(call) not in self._run.current]
        return unused or calls

    def keep(self, call_site: str, request: Request, **outcome: Any) -> None:
        """Remembers how a call ended: fields of a RecordedCall."""
        request = self._clean(request)
        fields: dict[str, Any] = {}
        for name, value in outcome.items():
            if isinstance(value, ToolResult):
                value = value.model_dump(mode="json")
            fields[name] = value
        bodies = outcome.get("told", ())
        fields["told"] = [(second, body.model_dump(mode="json")) for second, body in bodies]
        text = "".join(outcome.get("pieces", ()))
        if holds_secret(text, self._secrets):
            fields["pieces"] = [text]  # a secret may have come in two pieces
        fields = scrubbed(fields, self._secrets)
        fields["track"] = self._track
        fields["place"] = call_site
        fields["request"] = request
        fields["again"] = max(1, self._counts[call_site, digest(request)])
        call = RecordedCall.model_validate(fields)
        self.calls[key_of(call)] = call
        self._run.current.add(key_of(call))

    def keep_fault(
        self, call_site: str, request: Request, error: BaseException, **outcome: Any
    ) -> None:
        """Remembers a call that failed or was given up, so that the turn can fail in the same way again.

        A KitError is not kept: it speaks of this installation, and the next one has its own.
        """
        if isinstance(error, KitError):
            return
        failure = failure_of(error)
        task = asyncio.current_task()
        is_stop = task is not None and task.cancelling() > 0
        if failure.kind == "cancelled" and not is_stop:
            # The call itself raised CancelledError; nobody gave it up.
            failure = failure.replace(kind="exception")
        self.keep(call_site, request, broken=failure.model_dump(), **outcome)

    def save(self, tracks: Collection[str] | None = None) -> None:
        """Writes the file, whole or not at all. `tracks`: those there still are; None keeps every one."""
        calls: dict[Key, RecordedCall] = {}
        for key, call in self.calls.items():
            track = key[0]
            is_unplayed = track not in self._run.tracks and (tracks is None or track in tracks)
            if key in self._run.current or is_unplayed:
                calls[key] = call
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_name(self.path.name + ".part")
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines_of(self._run.header, calls))
        draft.replace(self.path)

    def close(self, tracks: Collection[str] | None = None) -> None:
        """Ends the run: writes what was recorded, or raises the CassetteError of the first request that did not fit."""
        if self.mode != "replay":
            self.save(tracks)
        elif self.errors:
            raise self.errors[0]

    def _clean(self, request: Request) -> Request:
        return tuple((label, scrubbed(text, self._secrets)) for label, text in request)


def cassette_at(file: Path | None, mode: Mode | None, *words: str) -> Cassette | None:
    """The recording that a command was given, None where it was given none; `words` are the
    command, as it is to be run again.

    Raises CassetteError for a mode without a file, and for a file that is missing or broken.
    """
    if file is None and mode is not None:
        raise CassetteError(f"--{mode} needs a file to write to: name one with --cassette FILE")
    if file is None:
        return None
    again = command(*words, "--cassette", file, "--refresh")
    return Cassette(file, mode or "replay", again=f"refresh it with: {again}")


def _read_leniently(path: Path) -> tuple[Header, dict[Key, RecordedCall]]:
    """Reads the file that is recorded over; one that cannot be read counts as empty."""
    try:
        return read(path)
    except CassetteError:
        return Header(), {}
