"""The tools of a deck's MCP servers: made from what was accepted, so a model reads nothing that a server says later."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, TypeAlias

from kit.core.errors import BindError, CodeError
from kit.core.extra import require
from kit.core.fault_injection import planned_faults
from kit.models.access import home_of
from kit.tools.enricher import UNAVAILABLE
from kit.tools.faults import with_faults
from kit.tools.mcp.json_schema import SchemaTooCostly, find_misfit, json_fault
from kit.tools.mcp.lock import (
    Acceptance,
    AcceptedTool,
    accepting,
    lock_fault,
    read_lock,
    tools_difference,
    write_lock,
)
from kit.tools.mcp.server import McpServer
from kit.tools.tool import LimitedTool, Toolbox, ToolLimits, ToolResult, tool_context, tool_name
from kit.tools.tool_factory import ToolFactory, ToolSetup

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from kit.tools.mcp.session import McpSession

Call: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[ToolResult]]
"""Calls a tool by its server's name for it."""
ALWAYS = ("PATH", "HOME", "LANG", "USER")
"""The environment variables that every command is given."""
UNREADABLE = (
    "This call was not made: its arguments do not fit its description. Make it again as "
    "that says, and do not speak of this."
)


def accepted_tools(
    servers: Mapping[str, McpServer], folder: Path, report: Callable[[str, str], None]
) -> Mapping[str, ToolFactory]:
    """The tools of a deck's servers by id, `server.tool`, as mcp.lock has them; `report` gets what was not accepted."""
    try:
        lock: Mapping[str, Acceptance] = read_lock(folder) if servers else {}
    except CodeError as error:
        report(next(iter(servers)), str(error))
        return {}
    is_accepted = True
    tools: dict[str, tuple[str, AcceptedTool]] = {}
    for name, server in servers.items():
        fault = lock_fault(name, server, lock, folder)
        if fault:
            report(name, fault)
            is_accepted = False
            continue
        for tool in lock[name].tools:
            tools[f"{name}.{tool.name}"] = (name, tool)
    # All or none: one factory starts all the servers.
    if not is_accepted:
        return {}
    return dict.fromkeys(tools, _factory(servers, tools, lock, folder))


def _factory(
    servers: Mapping[str, McpServer],
    tools: Mapping[str, tuple[str, AcceptedTool]],
    lock: Mapping[str, Acceptance],
    folder: Path,
) -> ToolFactory:
    """Makes these tools. The servers are started, or called, when a Kit opens, all at once."""

    @asynccontextmanager
    async def open_servers(setup: ToolSetup) -> AsyncGenerator[Toolbox]:
        async with AsyncExitStack() as stack:
            calls: Mapping[str, Call] = dict.fromkeys(servers, _call_nobody)
            if setup.live:
                variables = setup.server_environment
                sessions: dict[str, McpSession] = {}
                for name, server in servers.items():
                    sessions[name] = session_with(name, server, folder, variables, lock[name])
                for session in sessions.values():
                    stack.push_async_callback(session.aclose)
                await asyncio.gather(*(session.open() for session in sessions.values()))
                calls = {name: session.call for name, session in sessions.items()}
            limits: dict[str, ToolLimits] = {}
            for name, server in servers.items():
                limits[name] = ToolLimits(timeout_ms=server.timeout_ms)
            yield {
                key: LimitedTool(mcp_tool(key, tool, calls[name]), limits[name])
                for key, (name, tool) in tools.items()
            }

    arguments = {key: tool.input_schema.get("properties", {}) for key, (_, tool) in tools.items()}
    return ToolFactory(tuple(tools), open_servers, arguments)


async def _call_nobody(tool: str, arguments: dict[str, Any]) -> ToolResult:
    return ToolResult(
        text=UNAVAILABLE,
        fault="unavailable",
        detail="MCP servers are not called in a replay or a simulation",
    )


def mcp_tool(tool_id: str, tool: AcceptedTool, server: Call) -> "BaseTool":
    """A LangChain tool over a server's."""
    from langchain_core.tools import StructuredTool

    async def call(**arguments: Any) -> tuple[str, ToolResult]:
        try:
            fault = json_fault(arguments) or await find_misfit(tool.input_schema, arguments)
        except SchemaTooCostly as error:
            detail = f"the input schema of {tool_id}: {error}"
            result = ToolResult(text=UNAVAILABLE, fault="contract_violation", detail=detail)
        else:
            if fault:
                result = ToolResult(text=UNREADABLE, fault="bad_arguments", detail=fault)
            else:
                result = await server(tool.name, arguments)
        if planned_faults():
            result = with_faults(result, tool_context().agent)
        return result.text, result

    return StructuredTool(
        name=tool_name(tool_id),
        description=tool.description,
        args_schema=tool.input_schema,
        coroutine=call,
        response_format="content_and_artifact",
    )


def session_with(
    name: str,
    server: McpServer,
    folder: Path,
    environment: Mapping[str, str],
    acceptance: Acceptance | None = None,
) -> "McpSession":
    """A session that is not open yet; without an acceptance it takes whatever tools there are.

    Raises KitError for a variable that is unset, a key that belongs elsewhere, a missing package.
    """
    url, headers = address(name, server, environment)
    require("mcp", "mcp")
    from kit.tools.mcp.session import McpSession
    from kit.tools.mcp.transport import http_transport, stdio_transport

    if url:
        connect = partial(http_transport, url, headers)
    else:
        variables: dict[str, str] = {}
        for key, value in environment.items():
            if key in (*ALWAYS, *server.environment):
                variables[key] = value
        # The deck cannot know which interpreter runs the kit, and another one may lack its packages.
        if server.command[0] == "python":
            command = (sys.executable, *server.command[1:])
        else:
            command = server.command
        connect = partial(stdio_transport, command, folder, variables)
    tools = acceptance.tools if acceptance else None
    fix = f"; if you trust them: {accepting(folder)}"
    return McpSession(
        name, server, connect, tools=tools, fix=fix, secrets=server.secrets(environment)
    )


def address(
    name: str, server: McpServer, environment: Mapping[str, str]
) -> tuple[str, Mapping[str, str]]:
    """The URL of a server, empty for a command, and its headers, with the values of their variables.

    Raises BindError for a variable that is unset, or a key that belongs elsewhere.
    """
    for variable in server.variables:
        if not environment.get(variable, "").strip():
            raise BindError(f"MCP server {name!r} is to be told {variable}, which is not set")
    url, *values = (
        Template(text).substitute(environment).strip()
        for text in (server.url or "", *server.headers.values())
    )
    for variable in server.variables:
        home = home_of(variable, environment)
        if url and home and not f"{url}/".startswith(f"{home.rstrip('/')}/"):
            raise BindError(
                f"MCP server {name!r}: {variable} belongs to {home} and is not sent to {url}; name another"
            )
    return url, dict(zip(server.headers, values, strict=True))


async def accept(
    servers: Mapping[str, McpServer], folder: Path, environment: Mapping[str, str]
) -> dict[str, str]:
    """Starts or calls each server and writes down what it offers; returns server -> how that
    differs from what was accepted.

    Raises BindError for a server that cannot be used; nothing is written then.
    """
    sessions: dict[str, McpSession] = {}
    for name, server in servers.items():
        sessions[name] = session_with(name, server, folder, environment)
    old = read_lock(folder)
    new = dict[str, Acceptance]()
    for name, session in sessions.items():
        try:
            new[name] = Acceptance(server=servers[name].identity, tools=await session.open())
        finally:
            await session.aclose()
    write_lock(folder, new)
    mapping: dict[str, str] = {}
    for name in new:
        mapping[name] = tools_difference(old[name].tools if name in old else (), new[name].tools)
    return mapping


def variables_of(servers: Mapping[str, McpServer]) -> tuple[str, ...]:
    """The environment variables that are looked at for servers: what they are told, and where a key
    among that belongs."""
    names: list[str] = []
    for server in servers.values():
        names += server.variables
    return (*ALWAYS, *names, *(f"{name.removesuffix('_API_KEY')}_BASE_URL" for name in names))
