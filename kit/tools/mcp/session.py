"""A session with an MCP server: opened once, reopened when lost, refused while its tools are not the accepted ones."""

import asyncio
import base64
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, CallToolResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from kit.core.errors import LONGEST, BindError, PictureError, describe_error
from kit.core.outcome import Reason
from kit.core.picture import Picture
from kit.core.secret import without_keys, without_secret_words
from kit.core.value import Value
from kit.tools.enricher import UNAVAILABLE
from kit.tools.mcp.json_schema import SchemaTooCostly, find_misfit, find_schema_fault
from kit.tools.mcp.lock import AcceptedTool, tools_difference
from kit.tools.mcp.server import McpServer
from kit.tools.mcp.transport import GRACE, Wire
from kit.tools.skill import canonical_text
from kit.tools.tool import ToolResult

Connect = Callable[[Wire], Any]
"""Makes what the SDK's client takes: a transport, or a server in this process."""
Trouble: TypeAlias = Literal[
    "timeout", "gone", "unauthorized", "oversized", "schema_mismatch", "failed"
]
REASONS: Mapping[Trouble, Reason] = {
    "timeout": "timeout",
    "gone": "unavailable",
    "unauthorized": "unavailable",
    "oversized": "contract_violation",
    "schema_mismatch": "contract_violation",
    "failed": "exception",
}
"""What each trouble with a server is in the outcome of a turn's tool."""
MOST_PAGES = 100
"""Pages of a list of tools."""
MOST_TOOLS = 1_000
MOST_CHARACTERS = 1_000_000
"""Characters in which a server describes all its tools."""
_CLOSING = 4 * GRACE


class ToolsChanged(Exception):
    """A server offers other tools than those that were accepted."""


class Untrue(Exception):
    """A schema that is none, or a result that breaks the schema its server gave for it."""


class SessionFault(Value):
    """What went wrong between this process and a server."""

    trouble: Trouble
    detail: str


@dataclass
class _Connection:
    """One connection of a session."""

    wire: Wire
    client: "asyncio.Future[Client]"
    """Ready while the server's tools are known to be the accepted ones."""
    tools: tuple[AcceptedTool, ...] = ()


class McpSession:
    """Calls the tools of one server. It belongs to one event loop; any number of calls may run at once."""

    def __init__(
        self,
        name: str,
        server: McpServer,
        connect: Connect,
        *,
        tools: Sequence[AcceptedTool] | None = None,
        fix: str = "",
        secrets: Collection[str] = (),
    ):
        """`tools`: the accepted ones; None takes any. `fix`: what to do where it has others.
        `secrets`: what no error has."""
        self._name = name
        self._server = server
        self._connect = connect
        self._tools = tools
        self._fix = fix
        self._secrets = secrets
        self._connection: _Connection | None = None
        self._tasks = set[asyncio.Task[None]]()

    async def open(self) -> tuple[AcceptedTool, ...]:
        """Connects, and returns the server's tools. Raises BindError where it is gone, or they are not as accepted."""
        connection = self._current()
        try:
            await asyncio.shield(connection.client)
            return connection.tools
        except Exception as error:
            # A border: the server, and all that lies between, is someone else's.
            fault = _fault_of(error, connection.wire)
            words = without_secret_words(f"{fault.detail}{_quoted(connection.wire)}", self._secrets)
            raise BindError(f"MCP server {self._name!r} cannot be used: {words}") from error

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        """Calls a tool by the server's name for it; whatever goes wrong is a fault in the result."""
        unreached = await self.connect()
        result = unreached or await self.ask(tool, arguments)
        if isinstance(result, SessionFault):
            return ToolResult(
                text=UNAVAILABLE,
                fault=REASONS[result.trouble],
                detail=f"MCP server {self._name!r}: {result.detail}",
                in_doubt=unreached is None and result.trouble != "unauthorized",
            )
        text = text_of(result)
        if result.is_error:
            return ToolResult(
                text=UNAVAILABLE,
                fault="exception",
                detail=f"the tool says: {without_keys(text[:LONGEST])}",
            )
        pictures = _pictures_of(result)
        for picture in pictures:
            text = text.replace(UNSEEN_IMAGE, picture.words, 1)
        return ToolResult(text=text, pictures=pictures)

    async def connect(self) -> SessionFault | None:
        """Waits until the server can be asked; a fault where it cannot, so that nothing was sent."""
        connection = self._current()
        try:
            await asyncio.shield(connection.client)
        except Exception as error:
            # The same border.
            return _fault_of(error, connection.wire)
        return None

    async def ask(
        self, tool: str, arguments: dict[str, Any], meta: Any = None
    ) -> CallToolResult | SessionFault:
        """Calls a tool and returns all of its result, an error that the tool reports included.
        `meta` travels beside."""
        connection = self._current()
        try:
            client = await asyncio.shield(connection.client)
            return await client.call_tool(tool, arguments, meta=meta)
        except Exception as error:
            # The same border.
            return _fault_of(error, connection.wire)

    async def aclose(self) -> None:
        """Ends the connection, and the server's process with it."""
        connection = self._connection
        self._connection = None
        if connection is not None:
            connection.wire.end()
        if tasks := set(self._tasks):
            _, late = await asyncio.wait(tasks, timeout=_CLOSING)
            for task in late:
                task.cancel()

    def _current(self) -> _Connection:
        """The connection, a new one where there is none or the last one has ended."""
        last = self._connection
        if last is None or last.wire.over:
            wire = Wire(self._server.most_bytes)
            last = _Connection(wire, asyncio.get_running_loop().create_future())
            self._connection = last
            # An empty context, for its callback too: the task outlives the turn that opened it.
            nobody = Context()
            task = asyncio.create_task(self._keep(last), context=nobody)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard, context=nobody)
        return last

    async def _keep(self, connection: _Connection) -> None:
        """Opens a connection, and closes it once it has ended: the SDK wants one task to do both.

        The tools are compared at first, and whenever the server says that they changed.
        """
        wire = connection.wire
        seconds = self._server.connect_ms / 1000

        async def hear(message: Any) -> None:
            if getattr(message, "method", None) == "notifications/tools/list_changed":
                self._doubt(connection)
                wire.news.set()

        try:
            async with asyncio.timeout(seconds) as limit:
                async with Client(self._connect(wire), cache=None, message_handler=hear) as client:
                    # The SDK's own check holds the loop for as long as a result is large.
                    client.session.validate_tool_result = self._validate
                    watch = asyncio.create_task(self._watch(client, connection))
                    try:
                        while not wire.over:
                            wire.news.clear()
                            self._doubt(connection)
                            connection.tools = await self._compare(client)
                            limit.reschedule(None)
                            connection.client.set_result(client)
                            await wire.news.wait()
                            limit.reschedule(asyncio.get_running_loop().time() + seconds)
                    finally:
                        watch.cancel()
                        await asyncio.wait([watch])
        except Exception as error:
            # The same border.
            self._fail(connection, error)
        finally:
            wire.end()
            self._fail(connection, ConnectionError("the connection has ended"))

    def _doubt(self, connection: _Connection) -> None:
        """Lets calls wait until the tools have been compared again."""
        if connection.client.done():
            connection.client = asyncio.get_running_loop().create_future()

    def _fail(self, connection: _Connection, error: Exception) -> None:
        if not connection.client.done():
            connection.client.set_exception(error)
            # Nobody may be waiting for it, and asyncio warns of an exception that nobody looked at.
            connection.client.exception()

    async def _watch(self, client: Client, connection: _Connection) -> None:
        """Listens for changes of the tools, where the protocol has the client ask for them."""
        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (
            tools and tools.list_changed
        ):
            return
        # A server that does not tell of changes is compared whenever it is connected.
        with suppress(Exception):
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._doubt(connection)
                    connection.wire.news.set()

    async def _validate(self, name: str, result: CallToolResult) -> None:
        """Stands in for the SDK's own check, which holds the loop: a large result is held against a
        schema on a thread."""
        schema = next((tool.output_schema for tool in self._tools or () if tool.name == name), None)
        if schema is None:
            return
        try:
            fault = await find_misfit(schema, result.structured_content)
        except SchemaTooCostly as error:
            raise Untrue(f"the schema of its result cannot be used: {error}") from error
        if fault:
            raise Untrue(f"the result does not fit its own schema: {fault}")

    async def _compare(self, client: Client) -> tuple[AcceptedTool, ...]:
        tools = await offered_tools(client)
        if self._tools is None:
            return tools
        # A stranger may send thousands of lines that differ, and to compare them takes long.
        difference = await asyncio.to_thread(tools_difference, self._tools, tools)
        if difference:
            raise ToolsChanged(
                f"its tools are not those that were accepted{self._fix}:\n{difference}"
            )
        return tools


async def offered_tools(client: Client) -> tuple[AcceptedTool, ...]:
    """What a server says about its tools. Raises Untrue for a schema that is none, ToolsChanged for too many tools."""
    tools: list[AcceptedTool] = []
    characters = 0
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            characters += len(tool.model_dump_json())
            if len(tools) == MOST_TOOLS or characters > MOST_CHARACTERS:
                raise Untrue(
                    f"it offers more than {MOST_TOOLS:,} tools, or describes them in more than "
                    f"{MOST_CHARACTERS:,} characters"
                )
            tools.append(
                AcceptedTool(
                    name=tool.name,
                    description=tool.description or "",
                    input_schema=tool.input_schema,
                    output_schema=tool.output_schema,
                )
            )
            fault = await find_schema_fault(tool.input_schema, tool.output_schema or {})
            if fault:
                raise Untrue(
                    f"its tool {tool.name[:100]!r} has a schema that cannot be used: {fault}"
                )
        cursor = page.next_cursor
        if cursor is None:
            return tuple(sorted(tools, key=lambda tool: tool.name))
    raise ToolsChanged(f"its list of tools has more than {MOST_PAGES} pages")


def _fault_of(error: BaseException, wire: Wire) -> SessionFault:
    """What an exception of the SDK means, and in what words the trace keeps it."""
    # The SDK's task groups wrap whatever is raised in them.
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if wire.cut:
        return SessionFault(trouble="oversized", detail=wire.cut)
    if wire.unauthorized:
        return SessionFault(trouble="unauthorized", detail="it does not take the key")
    match error:
        case ToolsChanged() | Untrue():
            return SessionFault(trouble="schema_mismatch", detail=str(error)[:LONGEST])
        case TimeoutError():
            return SessionFault(trouble="timeout", detail="it did not answer in time")
        case MCPError() if error.code != CONNECTION_CLOSED and not wire.over:
            return SessionFault(trouble="failed", detail=describe_error(error))
        # The SDK's words for a result that does not fit the protocol, or its own schema.
        case ValidationError() | RuntimeError():
            return SessionFault(trouble="schema_mismatch", detail=describe_error(error))
        case _:
            return SessionFault(trouble="gone", detail=describe_error(error))


UNSEEN_IMAGE = "(image, not shown)"


def _pictures_of(result: CallToolResult) -> tuple[Picture, ...]:
    """The pictures of a result; none of them where one cannot be taken, for a server may send anything as a picture."""
    try:
        return tuple(
            [
                Picture.of(base64.b64decode(part.data))
                for part in result.content
                if part.type == "image"
            ]
        )
    except (ValueError, PictureError):
        return ()


def text_of(result: CallToolResult) -> str:
    """The words of a result; of what is no text, such as a picture, its type alone. Structured
    content says the same again."""
    parts: list[str] = []
    for part in result.content:
        if part.type == "text":
            parts.append(part.text)
        else:
            parts.append(f"({part.type.replace('_', ' ')}, not shown)")
    if not parts and result.structured_content is not None:
        parts = [canonical_text(result.structured_content)]
    return "\n".join(parts)


def _quoted(wire: Wire) -> str:
    """The end of what the server wrote to its standard error, for the developer who started it."""
    words = wire.last_words.decode(errors="replace")
    text = "".join(letter for letter in words if letter.isprintable() or letter == "\n").strip()
    if text:
        return f"\nIts last words:\n{text}"
    return ""
