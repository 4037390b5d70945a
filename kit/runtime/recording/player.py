"""Serves recorded calls in the place of models and tools, and says how a turn goes on without one."""

from collections.abc import Sequence
from typing import Any

from kit.core.errors import CassetteError
from kit.runtime.bound_model import BoundModel
from kit.runtime.recording.mismatch import mismatch
from kit.runtime.recording.recorded_call import Key, Mode, RecordedCall, Request, digest


class Player:
    """Asked before each call of a model or a tool, and told how those that were made ended."""

    def __init__(self, mode: Mode, source: str, advice: str, calls: dict[Key, RecordedCall]):
        """`source` names the record to a person, `advice` says what to do where it does not fit."""
        self.mode: Mode = mode
        self.pace = 1.0
        """How slowly it speaks; 1 is as it was recorded."""
        self.source = source
        self.calls = calls
        self.errors: list[CassetteError] = []
        """Why requests were refused, in their order."""
        self._advice = advice
        self._track = ""

    def model(self, place: str, model: BoundModel) -> BoundModel:
        """Returns the model that answers the call from a place."""
        return model

    def find(self, place: str, request: Request) -> RecordedCall | None:
        """Returns the recorded call for a request; None when the call is to be made.

        Raises CassetteError where the record does not fit, and calls are not made in its place.
        """
        return self.serve(place, request)

    def serve(self, place: str, request: Request, number: int = 1) -> RecordedCall | None:
        """As `find`, for the so-and-so-many-th equal request from a place."""
        if self.mode == "record":
            return None
        name = digest(request)
        # What was recorded once answers as often as it is asked.
        for earlier in range(number, 0, -1):
            call = self.calls.get((self._track, place, name, earlier))
            if call is not None and not (self.mode == "refresh" and call.was_refused):
                return call
        recorded = self.recorded_at(place)
        if self.mode == "refresh" or (self.mode == "live" and not recorded):
            return None
        call_name = f"{place}, {self._track}" if self._track else place
        error = CassetteError(mismatch(self.source, call_name, request, recorded, self._advice))
        self.errors.append(error)
        raise error

    def recorded_at(self, place: str) -> Sequence[RecordedCall]:
        """Returns the calls that were recorded from a place."""
        at_place = (self._track, place)
        return [call for key, call in self.calls.items() if key[:2] == at_place]

    async def sleep(self, seconds: float) -> None:
        """Waits as long as a recorded call took."""
        raise NotImplementedError

    def keep(self, place: str, request: Request, **outcome: Any) -> None:
        """Remembers how a call that was made ended: fields of a RecordedCall."""

    def keep_fault(
        self, place: str, request: Request, error: BaseException, **outcome: Any
    ) -> None:
        """Remembers a call that failed or was given up."""
