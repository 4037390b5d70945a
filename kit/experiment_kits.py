"""Opens the kits of a grid as the settings say, and tells a notebook's reader where traces go."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kit.compose.deck import Deck
from kit.models.access import ModelAccess
from kit.runtime.recording.cassette import Cassette
from kit.runtime.team import Models
from kit.settings import Settings
from kit.team_binder import access_of
from kit.wire import Kit, open_kit, open_opik

if TYPE_CHECKING:
    from kit.sinks.opik import OpikSink

DAY = "2026-11-01"
"""The date prompts carry in a grid: its results must not depend on when it is played."""


@dataclass(frozen=True)
class ExperimentKits:
    """Opens the kits of a grid, in other processes too, and Opik once all turns are played.

    While they are played its kits keep nothing and tell Opik nothing: what is kept is for the grid to say.
    """

    settings: Settings
    cassette: Cassette | None = None
    """What is recorded of the models and tools of every kit, or answers in their place."""

    @classmethod
    def of(
        cls, settings: Settings | None = None, *, virtual: bool, cassette: Cassette | None = None
    ) -> "ExperimentKits":
        """With these settings, else those of the environment; where time is `virtual` nothing waits."""
        settings = settings or Settings.read()
        return cls(settings.with_(pace=0.0) if virtual else settings, cassette)

    def __call__(
        self, *, models: Models, deck: Deck, faults: bool, tools: object = None
    ) -> AbstractAsyncContextManager[Kit]:
        """A kit as `Player` asks for one; `models` and `tools` as `open_kit` takes them."""
        quiet = self.settings.with_(store=":memory:", today=DAY, opik_url=None, opik_api_key=None)
        return open_kit(
            quiet, models=models, deck=deck, faults=faults, tools=tools, cassette=self.cassette
        )

    @property
    def access(self) -> ModelAccess:
        """The keys and endpoints that models are reached with."""
        return access_of(self.settings)

    @property
    def has_opik(self) -> bool:
        return self.settings.has_opik

    def opik(self) -> "OpikSink | None":
        """A sink of its own; None where no server is configured, or none answers."""
        return open_opik(self.settings)


@dataclass(frozen=True)
class WorkerKits:
    """Opens the kits of a grid on the machines of a cluster, by the environment of each: no key travels."""

    virtual: bool

    def __call__(
        self, *, models: Models, deck: Deck, faults: bool
    ) -> AbstractAsyncContextManager[Kit]:
        return ExperimentKits.of(virtual=self.virtual)(models=models, deck=deck, faults=faults)


def trace_home(settings: Settings | None) -> str:
    """Where turns go that are played with these settings, and who gets a copy: what every notebook
    says first.

    Two lines; one with None, for turns that are counted and not kept. Asks a configured server
    whether it is there, 1 s at worst; imports nothing of Opik's.
    """
    if settings is None:
        return "Traces: the turns of these studies are counted and not kept, and nothing is sent to Opik."
    if settings.store == ":memory:":
        place = "in memory, until the kit is closed"
    else:
        place = f"in {settings.store_name}"
    sentence = f"Traces: turns of kits opened with these settings are kept {place}."
    if not settings.has_opik:
        return f"{sentence}\nOpik: not configured (OPIK_URL_OVERRIDE or OPIK_API_KEY), nothing is sent."
    from kit.sinks.opik import answers, project_url

    if not answers(settings.opik_url):
        return f"{sentence}\nOpik: {settings.opik_url or 'the cloud'} does not answer, nothing is sent."
    page = project_url(settings.opik_url, settings.opik_workspace, settings.opik_project)
    return f"{sentence}\nOpik: copies of these turns at {page}"
