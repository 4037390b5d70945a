"""The tools that a deck brings: from the code its deck.yaml names, or given in Python; opened and closed with a Kit."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.core.errors import BindError, CodeError
from kit.tools.loading import Tools, load_each, tools_in
from kit.tools.mcp.server import McpServer
from kit.tools.mcp.tools import accepted_tools, variables_of
from kit.tools.tool import ConfiguredTool, LimitedTool, Toolbox, tool_name
from kit.tools.tool_factory import ToolFactory, ToolSetup

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


@dataclass(frozen=True)
class DeckTools:
    """Tools by id. Some are ready; the others' factories make them when a Kit opens."""

    tools: Tools = field(default_factory=dict[str, Any])
    references: tuple[str, ...] = ()
    """The references of deck.yaml that led to them; empty for tools given in Python."""
    folder: Path = field(default=Path(), compare=False)
    """The deck's folder, which factories are told."""
    servers: Mapping[str, McpServer] = field(default_factory=dict[str, McpServer])
    """The MCP servers of deck.yaml, whose tools are among them."""

    @property
    def secret_names(self) -> frozenset[str]:
        """The environment variables that its MCP servers are told: their values are secret."""
        names: set[str] = set()
        for server in self.servers.values():
            names |= {*server.variables}
        return frozenset(names)

    def variables(self, service: McpServer | None) -> tuple[str, ...]:
        """The environment variables that its MCP servers and a skill service are told, and those
        that say where these belong."""
        return variables_of({**self.servers, "skill service": service} if service else self.servers)

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(self.tools)

    def plus(self, added: "DeckTools") -> "DeckTools":
        """Both together. Raises BindError for an id that both have."""
        for tool_id in added.tools:
            if tool_id in self.tools:
                raise BindError(
                    f"tool {tool_id!r} is one of the deck's own already; rename the one that is added"
                )
        return DeckTools({**self.tools, **added.tools}, folder=self.folder, servers=self.servers)

    @asynccontextmanager
    async def open(self, setup: ToolSetup) -> AsyncGenerator[Toolbox]:
        """Enters each factory once, and leaves them in reverse order. Raises BindError for a
        factory that breaks its promise."""
        box: dict[str, BaseTool | ConfiguredTool | LimitedTool] = {}
        async with AsyncExitStack() as stack:
            for tool_id, tool in self.tools.items():
                if isinstance(tool, ToolFactory) and tool_id not in box:
                    contents = await stack.enter_async_context(tool.open(setup))
                    if set(contents) != set(tool.ids):
                        promised = ", ".join(tool.ids)
                        actual = ", ".join(contents) or "nothing"
                        raise BindError(
                            f"a tool_factory declares {promised} and makes {actual}; declare what it makes"
                        )
                    box |= contents
                elif not isinstance(tool, ToolFactory):
                    box[tool_id] = tool
            yield box

    def __reduce__(self) -> tuple[Callable[..., "DeckTools"], tuple[Any, ...]]:
        """Code crosses to another process by its references, as the functions of a deck's file have
        no importable name."""
        if self.references or self.servers:
            return load_deck_tools, (self.references, self.folder, None, self.servers)
        return DeckTools, (self.tools,)


def load_deck_tools(
    references: Sequence[str],
    folder: Path,
    report: Callable[[int | str, str], None] | None = None,
    servers: Mapping[str, McpServer] | None = None,
) -> DeckTools:
    """Imports the code that a deck names, and reads which tools of its MCP servers were accepted;
    no server is started.

    `report` gets each fault with the number of its reference, from 0, or the name of its server.
    Without `report` the first fault raises CodeError.
    """

    def complain(where: int | str, sentence: str) -> None:
        if report is None:
            raise CodeError(sentence)
        report(where, sentence)

    tools, sources = load_each(references, folder, "tool", tools_in, complain)
    for tool_id, factory in accepted_tools(servers or {}, folder, complain).items():
        server = tool_id.partition(".")[0]
        name = tool_name(tool_id)
        if name in sources:
            complain(
                server,
                f"a model reads {tool_id!r} as {name!r}, which is there already, from {sources[name]}; rename one",
            )
        tools[tool_id] = factory
        sources[name] = f"MCP server {server!r}"
    return DeckTools(tools, tuple(references), folder, servers or {})


def given_tools(tools: object) -> DeckTools:
    """Tools given in Python, in the forms that deck.yaml's code may have; None is no tools. Raises CodeError."""
    if isinstance(tools, DeckTools):
        return tools
    return DeckTools(tools_in(tools, "tools") if tools is not None else {})
