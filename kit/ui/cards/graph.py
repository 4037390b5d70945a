"""A deck as a graph: the orchestrator, whom it may ask, and the tools each of them may call."""

from collections.abc import Iterator
from typing import Any, Literal

from kit.compose.deck import Deck
from kit.core.value import Value
from kit.ui.shared.waterfall import COLOURS
from kit.ui.shared.wording import label

_ROW = 23
_START = {"orchestrator": 0.0, "agent": 0.3, "tool": 0.63}
_END = {"orchestrator": 0.235, "agent": 0.575, "tool": 1.0}
"""Where each column begins and ends, as shares of the width: names fit down to a phone's."""
_KINDS = {"orchestrator": COLOURS["turn"], "agent": COLOURS["agent"], "tool": COLOURS["tool"]}
_LIGHT = {"ink": "#17202B", "soft": "#7B8794", "chosen": "#0F62C9", "paper": "#FFFFFF"}
_DARK = {"ink": "#E6EBF1", "soft": "#6C7A8A", "chosen": "#6EA8FE", "paper": "#0F141A"}


class Node(Value):
    """A card or a tool, with its row from the top; `card` is what a click on it chooses."""

    id: str
    kind: Literal["orchestrator", "agent", "tool"]
    name: str
    card: str
    row: float
    bound: bool = True
    """False for a draft, and for what hangs on a flag that is off."""


class Edge(Value):
    """A card that may ask another one, or call a tool."""

    source: str
    target: str


class Graph(Value):
    """Nodes and edges in the order in which they are drawn."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @property
    def rows(self) -> int:
        return int(max(node.row for node in self.nodes)) + 1


def graph_of(deck: Deck) -> Graph:
    """Lays a deck out: every sub-agent beside its tools, a tool of several cards once, the
    orchestrator in the middle."""
    root = deck.cards[deck.settings.orchestrator]
    order = [root, *(deck.cards[name] for name in root.sub_agents)]
    order += [card for card in deck.cards.values() if card not in order]
    active = {card.id for card in deck.active()}
    nodes = list[Node]()
    edges = list[Edge]()
    tools = set[str]()
    row = 0
    for card in order:
        new: list[str] = []
        for tool in card.tools:
            if tool not in tools:
                new.append(tool)
        tools |= set(new)
        on = deck.tools_on(card)
        for at, tool in enumerate(new, row):
            nodes.append(
                Node(id=tool, kind="tool", name=tool, card=card.id, row=at, bound=tool in on)
            )
        if card is not root:
            if new:
                middle = row + (len(new) - 1) / 2
            else:
                middle = row
            nodes.append(
                Node(
                    id=card.id,
                    kind="agent",
                    name=label(card.id),
                    card=card.id,
                    row=middle,
                    bound=card.id in active,
                )
            )
        row += max(len(new), 0 if card is root else 1)
        edges += [Edge(source=card.id, target=other) for other in (*card.sub_agents, *card.tools)]
    nodes.append(
        Node(id=root.id, kind="orchestrator", name=label(root.id), card=root.id, row=(row - 1) / 2)
    )
    return Graph(nodes=tuple(nodes), edges=tuple(edges))


def graph_spec(graph: Graph, selection: str, *, dark: bool = False) -> dict[str, Any]:
    """Returns a Vega-Lite specification, as wide as its place. A click sets the parameter `picked`
    to the card's id; the selected card and what it may ask or call stand out."""
    if dark:
        ink = _DARK
    else:
        ink = _LIGHT
    x = {
        "field": "x",
        "type": "quantitative",
        "axis": None,
        "scale": {"domain": [0, 1], "nice": False},
    }
    y = {
        "field": "y",
        "type": "quantitative",
        "axis": None,
        "scale": {"domain": [graph.rows - 0.4, -0.6], "nice": False},
    }
    lit = {"test": "datum.lit", "value": ink["chosen"]}
    lines = {
        "data": {"values": list(_curves(graph, selection))},
        "mark": {"type": "line", "interpolate": "basis", "clip": True},
        "encoding": {
            "x": x,
            "y": y,
            "detail": {"field": "edge", "type": "nominal"},
            "order": {"field": "step", "type": "quantitative"},
            "color": {"condition": lit, "value": ink["soft"]},
            "opacity": {"condition": {"test": "datum.lit", "value": 1}, "value": 0.45},
            "strokeWidth": {"condition": {"test": "datum.lit", "value": 2}, "value": 1},
        },
    }
    nodes = {
        "data": {"values": [_node_row(node, graph, selection) for node in graph.nodes]},
        "encoding": {"y": y},
    }
    return {
        "layer": [lines, {**nodes, "layer": [_boxes(x, ink), _names(x, ink)]}],
        "params": [
            {"name": "picked", "select": {"type": "point", "fields": ["card"]}, "views": ["nodes"]}
        ],
        "height": _ROW * graph.rows,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": {"view": {"stroke": None}},
        "padding": {"left": 1, "right": 1, "top": 2, "bottom": 2},
    }


def _boxes(x: dict[str, Any], ink: dict[str, str]) -> dict[str, Any]:
    colour = {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": list(_KINDS), "range": list(_KINDS.values())},
        "legend": None,
    }
    return {
        "name": "nodes",
        "mark": {
            "type": "rect",
            "cornerRadius": 4,
            "height": _ROW - 4,
            "cursor": "pointer",
            "strokeWidth": 1.5,
        },
        "encoding": {
            "x": x,
            "x2": {"field": "x2"},
            "fill": colour,
            "stroke": {"condition": {"test": "datum.chosen", "value": ink["ink"]}, **colour},
            "fillOpacity": {"condition": {"test": "datum.chosen", "value": 1}, "value": 0.14},
            "strokeDash": {"condition": {"test": "!datum.bound", "value": [4, 3]}, "value": [1, 0]},
            "strokeOpacity": {
                "condition": {"test": "datum.kind === 'tool'", "value": 0},
                "value": 0.9,
            },
            "description": {"field": "said", "type": "nominal"},
            "tooltip": {"field": "said", "type": "nominal"},
        },
    }


def _names(x: dict[str, Any], ink: dict[str, str]) -> dict[str, Any]:
    return {
        "mark": {
            "type": "text",
            "align": "left",
            "dx": 7,
            "fontSize": 11.5,
            "baseline": "middle",
            "cursor": "pointer",
        },
        "encoding": {
            "x": x,
            "text": {"field": "name", "type": "nominal"},
            "color": {
                "condition": {"test": "datum.chosen", "value": "#FFFFFF"},
                "value": ink["ink"],
            },
        },
    }


def _node_row(node: Node, graph: Graph, selection: str) -> dict[str, Any]:
    below = sum(edge.source == node.id for edge in graph.edges)
    description = {
        "orchestrator": f"{node.name}, may ask or call {below}",
        "agent": f"{node.name}, {below} tools",
        "tool": node.name,
    }
    place = {
        "x": _START[node.kind],
        "x2": _END[node.kind],
        "y": node.row,
        "chosen": node.id == selection,
    }
    return {
        **node.model_dump(exclude={"row"}),
        **place,
        "said": description[node.kind] + ("" if node.bound else ", not bound here"),
    }


def _curves(graph: Graph, selection: str) -> Iterator[dict[str, Any]]:
    nodes = {node.id: node for node in graph.nodes}
    for number, edge in enumerate(graph.edges):
        start = nodes[edge.source]
        end = nodes[edge.target]
        begin = _END[start.kind]
        finish = _START[end.kind]
        if start.kind == "orchestrator":
            middle = begin + 0.038
        else:
            middle = finish - 0.035
        points = (
            (begin, start.row),
            (middle, start.row),
            (middle, end.row),
            (middle + 0.02, end.row),
            (finish, end.row),
        )
        for step, (x, y) in enumerate(points):
            lit = selection in (edge.source, edge.target)
            yield {"edge": number, "step": step, "x": round(x, 4), "y": y, "lit": lit}
