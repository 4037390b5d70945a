"""What a tool is given around its call, and what it gives back beside text."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from kit.core.context import InheritedContext
from kit.core.event import Body
from kit.core.outcome import ComponentPayload, Reason
from kit.core.value import Value
from kit.tools.limits import NO_LIMITS, ToolLimits

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


UNAVAILABLE = "This data is unavailable right now."
"""All that a model reads of a tool that has no data."""
EXEC_PYTHON = "exec_python"
"""Id of the tool that runs scripts (kit/tools/exec_python.py). An agent that has it reads the
beginning of a large result."""


@dataclass(frozen=True, slots=True)
class ConfiguredTool:
    """A tool that is made for each card from its configuration there: the card's, then the
    settings', then the flags'."""

    make: "Callable[[Mapping[str, Any]], BaseTool]"
    limits: ToolLimits = NO_LIMITS
    """Those of the tool where the configuration sets no others."""

    def __call__(self, config: Mapping[str, Any]) -> "BaseTool":
        return self.make(config)


@dataclass(frozen=True, slots=True)
class LimitedTool:
    """A function or a LangChain tool with limits of its own: `LimitedTool(stock, ToolLimits(timeout_ms=500))`."""

    tool: "BaseTool | Callable[..., Any]"
    limits: ToolLimits


Toolbox: TypeAlias = Mapping[str, "BaseTool | ConfiguredTool | LimitedTool"]
"""Tool id -> what `bind` gives to the agents whose cards name it."""


def parameters(tool: "BaseTool") -> Mapping[str, Mapping[str, Any]]:
    """Returns the arguments of a tool, each with its JSON Schema."""
    if isinstance(tool.args_schema, dict):
        return tool.args_schema.get("properties", {})
    return tool.args


def tool_name(tool_id: str) -> str:
    """The name of a tool as a model sees it: endpoints take no dot, as in the id `server.tool`."""
    return tool_id.replace(".", "__")


class ToolResult(Value):
    """The artifact of a tool call: returned beside its text by tools with `response_format="content_and_artifact"`."""

    text: str
    components: tuple[ComponentPayload, ...] = ()
    caveat: str | None = None
    """A reservation the answer must carry (envelope status partial)."""
    fault: Reason | None = None
    """Set when there is no data: the text then says only that it is unavailable."""
    detail: str = ""
    """Raw reason, for the trace alone."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Who a tool call is for. Set around the call, so that the schema a model sees stays clean."""

    agent: str
    turn_id: str
    inherited: InheritedContext
    emit: Callable[[Body], None]
    """Sends an event under the span of this call."""
    idempotency_key: Callable[[], str] = str
    """Names this call for a service that does the same thing once: when the turn goes on and makes
    it again, it is the same."""
    found: Callable[[], Sequence[ComponentPayload]] = tuple
    """The components this agent's tools have found so far in the turn."""
    path: str = ""
    """Where in the turn this agent works: another dispatch, also of the same agent, has another."""
    at_end: Callable[[Callable[[], None]], None] = lambda _: None
    """Has something done when this agent's work is over, however it ends; it must not raise."""


_context: ContextVar[ToolContext] = ContextVar("tool_context")


def tool_context() -> ToolContext:
    """The context of the tool call now running.

    Raises LookupError when no call is running.
    """
    return _context.get()


@contextmanager
def within(context: ToolContext) -> Generator[None]:
    """Sets the context for the calls made inside."""
    token = _context.set(context)
    try:
        yield
    finally:
        _context.reset(token)
