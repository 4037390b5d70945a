"""What a turn put on the page, folded from its events."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import orjson

from kit.core.bodies.call import ToolStarted
from kit.core.bodies.speech import Component
from kit.core.event import Event
from kit.core.record import ShownComponent
from kit.core.value import Value

MOST_SHOWN = 40
"""Components of one turn that can be referred to."""


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


def shown_in(turn_id: str, log: str) -> list[ShownComponent]:
    """Returns the components of a turn in the order in which they were shown, from its log as JSON.

    Where an agent chose what to show by render_* calls, its other components are left out.
    """
    if '"kind":"component"' not in log:
        return []
    # A session's logs have up to two million characters: to make an Event of each entry would take
    # ten times as long.
    render_spans: set[str] = set()
    choosing_agents: set[str] = set()
    candidates: list[tuple[bool, dict[str, Any]]] = []
    for event in orjson.loads(log):
        body = event["body"]
        if body["kind"] == "tool_started" and body["tool"].startswith("render_"):
            render_spans.add(event["span_id"])
        elif body["kind"] == "component":
            was_chosen = event["span_id"] in render_spans
            candidates.append((was_chosen, body))
            if was_chosen:
                choosing_agents.add(body["agent"])
    positions: Counter[str] = Counter()
    components: list[ShownComponent] = []
    for was_chosen, body in candidates:
        if len(components) == MOST_SHOWN:
            break
        if was_chosen or body["agent"] not in choosing_agents:
            positions[body["type"]] += 1
            components.append(_reference(turn_id, body, positions[body["type"]]))
    return components


def _reference(turn_id: str, body: dict[str, Any], position: int) -> ShownComponent:
    payload = body["payload"]
    return ShownComponent(
        turn_id=turn_id,
        agent=body["agent"],
        type=body["type"],
        id=str(payload.get("id") or ""),
        title=str(payload.get("title") or payload.get("name") or ""),
        position=position,
        payload=payload,
    )
