"""What a tool is given around its call, what it gives back beside text, and what it may take: time for a call,
further attempts, calls at once. These limits are enforced in runtime/call_tool.py."""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from string import Formatter
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from pydantic import Field, ValidationError, field_validator, model_validator

from kit.core.context import InheritedContext
from kit.core.errors import BindError, nearest
from kit.core.event import Body
from kit.core.outcome import ComponentPayload, Reason
from kit.core.picture import Picture
from kit.core.value import Value

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


_NO_QUESTIONS = ("yes", "no", "y", "n", "on", "off", "true", "false", "none", "null", "sí", "si")


class ToolLimits(Value, use_attribute_docstrings=True):
    """The limits of one tool, whatever it is made of: a function, a LangChain tool, a service."""

    timeout_ms: int | None = Field(default=None, gt=0)
    """Milliseconds one attempt may take, its wait for a place included; None: as long as the agent has."""
    retries: int = Field(default=0, ge=0, le=5)
    """Further attempts after one that was late, raised, or found its service unavailable; only for
    an idempotent tool."""
    idempotent: bool = False
    """Whether running it twice does no more than running it once."""
    confirm: bool | str = False
    """Whether the user is asked before it runs: true, or the question, with the arguments' names in braces."""
    once: bool = False
    """Whether the same call is made once in a turn, and never again once it was interrupted, unless
    it is idempotent."""
    at_once: int | None = Field(default=None, gt=0)
    """Calls of it that run at the same time in one Kit; others wait. None: any number, and for a
    synchronous tool sixteen."""

    @field_validator("confirm", mode="before")
    @classmethod
    def _asks(cls, value: object) -> object:
        """A question that is empty, or a word for yes or no in quotes, would have the act done unasked, or ask that."""
        if isinstance(value, bool):
            return value
        words = str(value).strip().lower()
        if words in _NO_QUESTIONS or not any(map(str.isalpha, words)):
            raise ValueError(
                f"{value!r} asks nothing: write a sentence that its user can say yes or no to, or `confirm: true`"
            )
        return value

    @model_validator(mode="after")
    def _repeatable(self) -> Self:
        if self.retries and not self.idempotent:
            raise ValueError(
                "retries may do a thing twice: say `idempotent: true` where that does no harm, or take them out"
            )
        return self

    @property
    def is_act(self) -> bool:
        """Whether what became of a call is kept: its user is asked first, or it must not be made twice."""
        return bool(self.confirm) or self.once


def confirm_fault(limits: ToolLimits, parameters: Collection[str]) -> str | None:
    """Says what the question of a tool cannot fill in; None where every name in braces is one of its arguments."""
    if not isinstance(limits.confirm, str):
        return None
    try:
        names = {name for _, name, _, _ in Formatter().parse(limits.confirm) if name is not None}
    except ValueError as error:
        return f"`confirm` cannot be read: {error}; write {{{{ and }}}} for braces that are meant"
    unknown = sorted(names - set(parameters))
    if unknown:
        return f"`confirm` names {unknown[0]!r}, which is no argument of the tool: {nearest(unknown[0], parameters)}"
    return None


NO_LIMITS = ToolLimits()


def merge_limits(tool_id: str, limits: ToolLimits, *layers: Mapping[str, Any]) -> ToolLimits:
    """Returns a tool's own limits under those of each layer, of which a later one replaces single
    values of an earlier one.

    What a layer holds beside limits is left out. Raises BindError, which names the tool and the fix.
    """
    values = limits.model_dump(exclude_unset=True)
    for layer in layers:
        values |= {name: value for name, value in layer.items() if name in ToolLimits.model_fields}
    try:
        return ToolLimits.model_validate(values)
    except ValidationError as error:
        fault = error.errors()[0]
        # Of the values together there is no field to name.
        field = f"{fault['loc'][0]}: " if fault["loc"] else ""
        sentence = fault["msg"].removeprefix("Value error, ")
        raise BindError(f"tool {tool_id!r}: {field}{sentence}") from error


def without_limits(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the rest of a tool's configuration: what the tool itself is given."""
    return {name: value for name, value in config.items() if name not in ToolLimits.model_fields}


UNAVAILABLE = "This data is unavailable right now."
"""All that a model reads of a tool that has no data."""
LONGEST_RESULT = 100_000
"""Characters that a model reads of what a function returned, about 25,000 tokens; that the rest is cut off is said.
What an MCP server may return is bounded by its `most_bytes`, and what an agent that runs scripts reads by
`large_result` of deck.yaml."""
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
    in_doubt: bool = Field(default=False, exclude=True, repr=False)
    """The call was sent, and what came back does not say whether it was done."""
    pictures: tuple[Picture, ...] = Field(default=(), exclude=True, repr=False)
    """What its model is shown beside the text, where it takes pictures; no trace and no recording holds them."""

    def without_pictures(self) -> Self:
        """The same, and its text says that its pictures are not shown."""
        text = self.text
        for picture in self.pictures:
            text = text.replace(picture.words, f"{picture.words}, not shown to the model", 1)
        return self.replace(text=text, pictures=())


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
