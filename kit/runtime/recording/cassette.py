"""Records how calls of models and tools ended and plays it back; keyed by what was asked and where,
never by arrival order."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kit.core.display.command import command
from kit.core.errors import CassetteError, KitError
from kit.core.secret import holds_secret, scrubbed
from kit.runtime.bound_model import BoundModel
from kit.runtime.recording.mismatch import misfit
from kit.runtime.recording.recorded_call import (
    Header,
    Key,
    Mode,
    Request,
    Take,
    digest,
    failure_of,
    key_of,
    lines_of,
    read,
)
from kit.tools.tool import ToolResult


@dataclass
class _Recording:
    """The file in memory, shared by all its tracks."""

    header: Header
    takes: dict[Key, Take]
    current: set[Key] = field(default_factory=set[Key])
    """Asked, or recorded, by this run."""
    begun: set[str] = field(default_factory=set[str])
    """Tracks that this run plays."""
    misfits: list[CassetteError] = field(default_factory=list[CassetteError])


class Cassette:
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
        pace: float = 1.0,
        again: str = "record it again, or refresh it",
    ):
        """`pace`: how slowly a replay speaks, 1 is as it was recorded; a refresh waits for nothing
        it knows. `again`: what to run when the recording does not fit.

        Raises CassetteError, with file and line, for a file that is missing or broken; to record
        over one, neither matters.
        """
        self.mode: Mode = mode
        self.path = Path(path)
        if mode == "refresh":
            self.pace = 0.0
        else:
            self.pace = pace
        self._secrets = tuple[str, ...]()
        self._again = again
        self._track = ""
        self._counts: Counter[tuple[str, str]] = Counter()
        fresh = mode == "refresh" and not self.path.exists()
        header, takes = (
            (Header(), {}) if fresh else _old(self.path) if mode == "record" else read(self.path)
        )
        self._recording = _Recording(header, takes)

    def begin(self, today: str, model: str | None, secrets: Iterable[str | None] = ()) -> Header:
        """Notes the date and model of this run, and which keys must not be written; returns what it is to be told.

        That is the same when it records, and what stands in the file when it replays or refreshes.
        """
        self._secrets = tuple(secret for secret in secrets if secret)
        if self.mode == "record" or not self._recording.takes:
            self._recording.header = Header(today=today, model=model)
        return self._recording.header

    def model(self, path: str, model: BoundModel) -> BoundModel:
        """Returns the model of the next call from a path: here the one that is asked."""
        return model

    async def sleep(self, seconds: float) -> None:
        """Waits as long as a recorded call took, at the pace of the replay."""
        await asyncio.sleep(seconds * self.pace)

    def track(self, name: str) -> "Cassette":
        """The same file for one of several runs in it."""
        mine = copy(self)
        mine._track = name
        mine._counts = Counter()
        self._recording.begun.add(name)
        return mine

    def holds(self, name: str) -> bool:
        """Whether the file holds a take of this track."""
        return any(track == name for track, *_ in self._recording.takes)

    def find(self, place: str, request: Request) -> Take | None:
        """Returns the take for a request; None when the call is to be made. A replay raises
        CassetteError with what changed."""
        request = self._clean(request)
        name = digest(request)
        self._recording.begun.add(self._track)
        self._counts[place, name] += 1
        if self.mode == "record":
            return None
        for again in range(
            self._counts[place, name], 0, -1
        ):  # one that was recorded once answers as often as it is asked
            take = self._recording.takes.get((self._track, place, name, again))
            if take is not None and not (self.mode == "refresh" and take.was_refused):
                self._recording.current.add(key_of(take))
                return take
        if self.mode == "refresh":
            return None
        takes = [
            take for key, take in self._recording.takes.items() if key[:2] == (self._track, place)
        ]
        unasked = [take for take in takes if key_of(take) not in self._recording.current]
        error = CassetteError(
            misfit(str(self.path), self._track, place, request, unasked or takes, self._again)
        )
        self._recording.misfits.append(error)
        raise error

    def keep(self, place: str, request: Request, **outcome: Any) -> None:
        """Remembers how a call ended: fields of a Take."""
        request = self._clean(request)
        again = max(1, self._counts[place, digest(request)])
        fields: dict[str, dict[str, Any] | Any] = {}
        for name, value in outcome.items():
            fields[name] = value.model_dump(mode="json") if isinstance(value, ToolResult) else value
        fields["told"] = [
            (at, body.model_dump(mode="json")) for at, body in outcome.get("told", ())
        ]
        if holds_secret(whole := "".join(outcome.get("pieces", ())), self._secrets):
            fields["pieces"] = [whole]  # it may have come in two
        fields = scrubbed(fields, self._secrets)
        take = Take.model_validate(
            {**fields, "track": self._track, "place": place, "request": request, "again": again}
        )
        self._recording.takes[key_of(take)] = take
        self._recording.current.add(key_of(take))

    def keep_fault(
        self, place: str, request: Request, error: BaseException, **outcome: Any
    ) -> None:
        """Remembers a call that failed or was given up, so that the turn can fail in the same way again.

        A KitError is not kept: it speaks of this installation, and the next one has its own.
        """
        if not isinstance(error, KitError):
            task = asyncio.current_task()
            is_stop = (
                isinstance(error, asyncio.CancelledError)
                and task is not None
                and task.cancelling() > 0
            )
            failure = failure_of(error)
            if failure.kind == "cancelled" and not is_stop:
                failure = failure.replace(kind="exception")
            self.keep(place, request, broken=failure.model_dump(), **outcome)

    def save(self, tracks: Collection[str] | None = None) -> None:
        """Writes the file, whole or not at all. `tracks`: those there still are; None keeps every one."""
        recording = self._recording
        unplayed = {
            key[0] for key in recording.takes if tracks is None or key[0] in tracks
        } - recording.begun
        takes = {
            key: take
            for key, take in recording.takes.items()
            if key in recording.current or key[0] in unplayed
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_name(self.path.name + ".part")
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines_of(recording.header, takes))
        draft.replace(self.path)

    def close(self, tracks: Collection[str] | None = None) -> None:
        """Ends the run: writes what was recorded, or raises the CassetteError of the first request that did not fit."""
        if self.mode != "replay":
            self.save(tracks)
        elif self._recording.misfits:
            raise self._recording.misfits[0]

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


def _old(path: Path) -> tuple[Header, dict[Key, Take]]:
    """Reads the file that is recorded over; one that cannot be read counts as empty."""
    try:
        return read(path)
    except CassetteError:
        return Header(), {}
