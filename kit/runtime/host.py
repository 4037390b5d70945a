"""What a turn needs of whoever runs it."""

from typing import Protocol

from kit.runtime.pattern import Pattern
from kit.runtime.recording.cassette import Cassette
from kit.runtime.team import Team
from kit.sinks.recorder import Recorder
from kit.stores.protocol import Store


class Host(Protocol):
    """What a turn needs of the kit that runs it."""

    @property
    def team(self) -> Team: ...
    @property
    def store(self) -> Store: ...
    @property
    def recorder(self) -> Recorder: ...
    @property
    def cassette(self) -> Cassette | None: ...
    @property
    def pattern(self) -> Pattern: ...
    @property
    def today(self) -> str:
        """The date prompts carry."""
        ...
