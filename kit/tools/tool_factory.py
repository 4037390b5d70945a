"""Tools that need something opened first: an async context manager makes them from a ToolSetup, once for each Kit."""

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kit.stores.bus.bus import Bus, LocalBus
from kit.tools.embedder import Embedder, WordVectors
from kit.tools.tool import Toolbox

if TYPE_CHECKING:
    from kit.stores.documents.protocol import Documents
    from kit.stores.turn_store import TurnStore
    from kit.tools.mcp.server import McpServer


class ToolSettings(Protocol):
    """What tools may read of a kit's settings."""

    @property
    def data(self) -> Path:
        """Folder of the data that tools read."""
        ...

    @property
    def pace(self) -> float:
        """How slowly simulated services work: 1 takes their time, 0 none."""
        ...

    @property
    def today(self) -> str | None:
        """The date as ISO text; None where it is the day of the turn."""
        ...

    @property
    def retention_days(self) -> float | None:
        """Days that events and outputs of plans are kept; None where they stay."""
        ...

    @property
    def location(self) -> str | None:
        """Where the user is, when no session says so."""
        ...


@dataclass(frozen=True, slots=True)
class ToolSetup:
    """What a tool factory is given when a Kit opens."""

    folder: Path
    """The folder of the deck that names the factory."""
    settings: ToolSettings
    store: "TurnStore"
    """The kit's store of turns, conversations and feedback."""
    documents: "Callable[[], Documents]"
    """Gives the stores of documents in the same file (docs/stores.md)."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """The environment variables that deck.yaml lists under `environment:` and that are set. What stands in one whose
    name says KEY, TOKEN, SECRET or PASSWORD is written into no trace (`secret_values` in kit/core/secret.py)."""
    server_environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """What the deck's MCP servers, and the skill service, may be told, and where it belongs."""
    skill_service: "McpServer | None" = None
    """Where plans find their skills; None where neither the deck nor the environment names a service."""
    live: bool = True
    """Whether tools are going to be called; else a recording or a simulation answers, and no MCP server is started."""
    clock: Callable[[], float] = time.time
    """Seconds since the epoch."""
    faults: bool = False
    """Whether turns of this kit may be told to go wrong; `kit.tools.faults` passes that on to
    a service over HTTP."""
    bus: Bus = field(default_factory=LocalBus)
    """Where tools say what others may wait for; the kit's (docs/stores.md)."""
    embedder: Embedder = field(default_factory=WordVectors)
    """By whose vectors memories are found."""


OpenTools = Callable[[ToolSetup], AbstractAsyncContextManager[Toolbox]]


@dataclass(frozen=True, slots=True)
class ToolFactory:
    """The ids of some tools, and what makes them. Nothing is opened until a Kit is."""

    ids: tuple[str, ...]
    open: OpenTools
    arguments: Mapping[str, Collection[str]] = field(default_factory=dict[str, Collection[str]])
    """Tool id -> names of its arguments, where they are known before the tools are opened."""


def tool_factory(*ids: str) -> Callable[[OpenTools], ToolFactory]:
    """Declares an async context manager as the maker of the tools with these ids.

    The function gets a ToolSetup and yields a mapping from each id to a LangChain tool, or to a
    function that makes one from the tool's configuration on a card. It is entered when a Kit opens
    and left when that Kit closes:

        @tool_factory("search_orders")
        @asynccontextmanager
        async def TOOLS(setup):
            async with httpx.AsyncClient(base_url=setup.environment["ORDERS_URL"]) as client:
                yield {"search_orders": search_tool(client)}
    """
    return lambda open: ToolFactory(ids, open)
