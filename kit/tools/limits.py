"""What a tool may take: time for a call, further attempts, calls at once. Declared here, enforced
in runtime/call_tool.py."""

from collections.abc import Collection, Mapping
from string import Formatter
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from kit.core.errors import BindError, nearest
from kit.core.value import Value


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
