"""Render tools, as data: a sub-agent chooses which of the things it found belong to its answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from kit.tools.enricher import structured
from kit.tools.tool import ToolResult, tool_context

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


def _texts(description: str) -> Mapping[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


PROPERTIES: Mapping[str, Mapping[str, Any]] = {
    "component_ids": _texts(
        "Ids or titles of what to show, in the order in which it is to be shown."
    ),
    "titles": _texts(
        "A short title for each of them, in the same order; leave out to keep its own."
    ),
    "analytics_tags": _texts("Words that say why this is shown, such as cheapest or expiring."),
}
"""The stored tool input is exactly these arguments."""


@dataclass(frozen=True, slots=True)
class RenderSpec:
    """A render tool: what it is called, and the type of component it shows."""

    id: str
    type: str


def render_tool(spec: RenderSpec) -> "BaseTool":
    """Shows components by id, out of those this agent's tools found in this turn; an id or title
    nobody found is not made up.

    The payload goes to the page and to the store; the model reads back only how many are shown.
    """

    async def call(**arguments: Any) -> tuple[str, ToolResult]:
        ids = _list(arguments.get("component_ids"))
        titles = _list(arguments.get("titles"))
        found = [c for c in tool_context().found() if c.type == spec.type]
        components = {str(c.payload.get(name)): c for name in ("title", "id") for c in found}
        choices = [(components[key], at) for at, key in enumerate(ids) if key in components]
        visible = tuple(
            component.model_copy(update={"payload": {**component.payload, "title": titles[at]}})
            if at < len(titles)
            else component
            for component, at in choices
        )
        unknown = len(ids) - len(visible)
        text = f"{len(visible)} shown." + (
            f" {unknown} left out: nothing you looked up is called that." if unknown else ""
        )
        return text, ToolResult(text=text, components=visible)

    plural = spec.id.removeprefix("render_")
    description = (
        f"Show {plural} you have looked up to the user, as cards beside your answer. "
        f"Do not repeat their details in words."
    )
    return structured(spec.id, description, PROPERTIES, ("component_ids",), call)


def _list(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [str(item) for item in cast("list[Any]", value)]
    return []
