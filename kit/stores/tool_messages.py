"""What each tool call of a turn put on the page, folded from the turn's events."""

from collections.abc import Iterable
from typing import Any

from kit.core.bodies.call import ToolStarted
from kit.core.bodies.speech import Component
from kit.core.event import Event
from kit.core.value import Value


class ToolMessage(Value):
    """The components of one tool call, `render_*` calls above all."""

    seq: int
    """The number of the event with the first component."""
    sub_agent_id: str
    tool: str | None = None
    """None for components that an agent wrote inline in its narration, as no tool was called."""
    call_id: str | None = None
    arguments: dict[str, Any] = {}
    """As the model gave them."""
    components: tuple[Component, ...] = ()
    """In the order in which they were shown."""

    @property
    def component_ids(self) -> list[str | None]:
        return [component.payload.get("id") for component in self.components]

    @property
    def titles(self) -> list[str | None]:
        """What the user read above each component: its title, else its name."""
        payloads = [component.payload for component in self.components]
        return [payload.get("title", payload.get("name")) for payload in payloads]

    @property
    def analytics_tags(self) -> list[str]:
        return self.arguments.get("analytics_tags") or []


def tool_messages(events: Iterable[Event]) -> list[ToolMessage]:
    """Returns a turn's tool messages in the order of their first components."""
    calls: dict[str, ToolStarted] = {}
    messages: dict[tuple[str, str], ToolMessage] = {}
    for event in events:
        body = event.body
        if isinstance(body, ToolStarted):
            calls[event.span_id] = body
        elif isinstance(body, Component):
            key = (event.span_id, body.agent)
            message = messages.get(key)
            if message is None:
                message = _first_message(event.seq, body.agent, calls.get(event.span_id))
            messages[key] = message.replace(components=(*message.components, body))
    return list(messages.values())


def _first_message(seq: int, agent: str, call: ToolStarted | None) -> ToolMessage:
    if call is None:
        return ToolMessage(seq=seq, sub_agent_id=agent)
    return ToolMessage(
        seq=seq, sub_agent_id=agent, tool=call.tool, call_id=call.call_id, arguments=call.args
    )
