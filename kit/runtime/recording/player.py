"""Serves recorded calls in the place of models and tools, and says how a turn goes on without one."""

from collections.abc import Sequence
from typing import Any

from kit.core.errors import CassetteError
from kit.runtime.bound_model import BoundModel
from kit.runtime.recording.mismatch import mismatch
from kit.runtime.recording.recorded_call import Key, Mode, RecordedCall, Request, digest


class Player:
    """Asked before each call of a model or a tool, and told how those that were made ended.

    A call site is where in the turn a call is made from, such as `orchestrator/1.2.rewards:1`: the path of
    dispatches, and the number of the call from there. It is the same on every run, whatever ends first.
    """

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

    def model(self, call_site: str, model: BoundModel) -> BoundModel:
        """Returns the model that answers the call from a site."""
        return model

    def find(self, call_site: str, request: Request) -> RecordedCall | None:
        """Returns the recorded call for a request; None when the call is to be made.

        Raises CassetteError where the record does not fit, and calls are not made in its place.
        """
        return self.serve(call_site, request)

    def serve(self, call_site: str, request: Request, number: int = 1) -> RecordedCall | None:
        """As `find`, for the so-and-so-many-th equal request from a site."""
        if self.mode == "record":
            return None
        name = digest(request)
        # What was recorded once answers as often as it is asked.
        for earlier in range(number, 0, -1):
            call = self.calls.get((self._track, call_site, name, earlier))
            if call is not None and not (self.mode == "refresh" and call.was_refused):
                return call
        recorded = self.recorded_at(call_site)
        if self.mode == "refresh" or (self.mode == "live" and not recorded):
            return None
        call_name = call_site
        if self._track:
            call_name = f"{call_site}, {self._track}"
        error = CassetteError(mismatch(self.source, call_name, request, recorded, self._advice))
        self.errors.append(error)
        raise error

    def recorded_at(self, call_site: str) -> Sequence[RecordedCall]:
        """Returns the calls that were recorded from a site."""
        prefix = (self._track, call_site)
        return [call for key, call in self.calls.items() if key[:2] == prefix]

    async def sleep(self, seconds: float) -> None:
        """Waits as long as a recorded call took."""
        raise NotImplementedError

    def keep(self, call_site: str, request: Request, **outcome: Any) -> None:
        """Remembers how a call that was made ended: fields of a RecordedCall."""

    def keep_fault(
        self, call_site: str, request: Request, error: BaseException, **outcome: Any
    ) -> None:
        """Remembers a call that failed or was given up."""
