"""What a turn put on the page, folded from its events."""

from collections import Counter
from typing import Any

import orjson

from kit.core.record import ShownComponent

MOST_SHOWN = 40
"""Components of one turn that can be referred to."""


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
