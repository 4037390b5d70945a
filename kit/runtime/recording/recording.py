"""What answers calls of models and tools in their place: a cassette, or another turn."""

from typing import Any, Protocol

from kit.runtime.bound_model import BoundModel
from kit.runtime.recording.recorded_call import Mode, Request, Take


class Recording(Protocol):
    """Asked before each call of a model or a tool, and told how those that were made ended."""

    @property
    def mode(self) -> Mode:
        """Whether calls are made, and which."""
        ...

    @property
    def pace(self) -> float:
        """How slowly it speaks; 1 is as it was recorded."""
        ...

    def model(self, path: str, model: BoundModel) -> BoundModel:
        """Returns the model that answers the next call from a path."""
        ...

    def find(self, place: str, request: Request) -> Take | None:
        """Returns the take for a request; None when the call is to be made. Raises CassetteError
        where it does not fit."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Waits as long as a recorded call took."""
        ...

    def keep(self, place: str, request: Request, **outcome: Any) -> None:
        """Remembers how a call ended: fields of a Take."""
        ...

    def keep_fault(
        self, place: str, request: Request, error: BaseException, **outcome: Any
    ) -> None:
        """Remembers a call that failed or was given up."""
        ...
