"""Render tools, as data: a sub-agent chooses which of the things it found belong to its answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kit.core.outcome import ComponentPayload
from kit.core.schema.json_value import is_list
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
        components: dict[str, ComponentPayload] = {}
        # Ids come last: the title of one thing may be the id of another.
        for field in ("title", "id"):
            for component in tool_context().found():
                if component.type == spec.type:
                    components[str(component.payload.get(field))] = component
        visible: list[ComponentPayload] = []
        for number, key in enumerate(ids):
            component = components.get(key)
            if component is not None and number < len(titles):
                payload = {**component.payload, "title": titles[number]}
                component = component.replace(payload=payload)
            if component is not None:
                visible.append(component)
        text = f"{len(visible)} shown."
        unknown = len(ids) - len(visible)
        if unknown:
            text += f" {unknown} left out: nothing you looked up is called that."
        return text, ToolResult(text=text, components=tuple(visible))

    plural = spec.id.removeprefix("render_")
    description = (
        f"Show {plural} you have looked up to the user, as cards beside your answer. "
        f"Do not repeat their details in words."
    )
    return structured(spec.id, description, PROPERTIES, ("component_ids",), call)


def _list(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if is_list(value):
        return [str(item) for item in value]
    return []
