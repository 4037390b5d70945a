"""A deck as a graph: the orchestrator, whom it may ask, and the tools each of them may call."""

from typing import Any, Literal

import altair as alt

from kit.compose.deck import Deck
from kit.core.card import AgentCard
from kit.core.value import Value
from kit.ui.shared.chart import (
    COLOURS,
    Layers,
    Palette,
    data_of,
    draw_selection_chart,
    palette,
    picked_by,
)
from kit.ui.shared.wording import label

_ROW = 23
_START = {"orchestrator": 0.0, "agent": 0.3, "tool": 0.63}
_END = {"orchestrator": 0.235, "agent": 0.575, "tool": 1.0}
"""Where each column begins and ends, as shares of the width: names fit down to a phone's."""
_KINDS = {"orchestrator": COLOURS["turn"], "agent": COLOURS["agent"], "tool": COLOURS["tool"]}


Kind = Literal["orchestrator", "agent", "tool"]


class Node(Value):
    """A card or a tool, with its row from the top; `card` is what a click on it chooses."""

    id: str
    kind: Kind
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
    # Sub-agents of sub-agents, and cards that nobody asks, come after those that the orchestrator asks.
    names = dict.fromkeys((root.id, *root.sub_agents, *deck.cards))
    order = [deck.cards[name] for name in names]
    active = {card.id for card in deck.active()}
    nodes: list[Node] = []
    edges: list[Edge] = []
    tools: set[str] = set()
    row = 0
    for card in order:
        bound_tools = deck.tools_on(card)
        first = row
        for tool in card.tools:
            # A tool of several cards stands beside the first of them.
            if tool not in tools:
                tools.add(tool)
                bound = tool in bound_tools
                nodes.append(
                    Node(id=tool, kind="tool", name=tool, card=card.id, row=row, bound=bound)
                )
                row += 1
        if card is not root:
            row = max(row, first + 1)
            middle = (first + row - 1) / 2
            nodes.append(_card_node(card, "agent", middle, bound=card.id in active))
        for target in (*card.sub_agents, *card.tools):
            edges.append(Edge(source=card.id, target=target))
    nodes.append(_card_node(root, "orchestrator", (row - 1) / 2, bound=True))
    return Graph(nodes=tuple(nodes), edges=tuple(edges))


def _card_node(card: AgentCard, kind: Kind, row: float, *, bound: bool) -> Node:
    return Node(id=card.id, kind=kind, name=label(card.id), card=card.id, row=row, bound=bound)


def draw_graph(graph: Graph, selected: str) -> None:
    """Draws a graph. A click on a box puts its card into the address; the selected card and what it
    may ask or call stand out."""
    words = f"The deck as a graph of {len(graph.nodes)} cards and tools; "
    words += "the list above chooses the same cards by keyboard"
    chart = graph_chart(graph, selected)
    draw_selection_chart(chart, _ROW * graph.rows, words, "deck-graph", "card", "card")


def graph_chart(graph: Graph, selected: str) -> Layers:
    """Returns the chart: curves below, boxes on them, names in the boxes."""
    colours = palette()
    x = alt.X("x:Q", axis=None).scale(domain=[0, 1], nice=False)
    y = alt.Y("y:Q", axis=None).scale(domain=[graph.rows - 0.4, -0.6], nice=False)
    rows = [_node_row(node, graph, selected) for node in graph.nodes]
    nodes = alt.Chart(data_of(rows)).encode(x=x, y=y)
    chart = alt.layer(
        _curves(graph, selected, x, y, colours), _boxes(nodes, colours), _names(nodes, colours)
    )
    return chart.properties(padding={"left": 1, "right": 1, "top": 2, "bottom": 2})


def _curves(graph: Graph, selected: str, x: alt.X, y: alt.Y, colours: Palette) -> alt.Chart:
    selected_edge = alt.when("datum.selected")
    return (
        alt.Chart(data_of(curve_rows(graph, selected)))
        .mark_line(interpolate="basis", clip=True)
        .encode(
            x=x,
            y=y,
            detail="edge:N",
            order="step:Q",
            color=selected_edge.then(alt.value(colours.bar)).otherwise(alt.value(colours.line)),
            opacity=selected_edge.then(alt.value(1)).otherwise(alt.value(0.45)),
            strokeWidth=selected_edge.then(alt.value(2)).otherwise(alt.value(1)),
        )
    )


def _boxes(nodes: alt.Chart, colours: Palette) -> alt.Chart:
    scale = alt.Scale(domain=list(_KINDS), range=list(_KINDS.values()))
    selected = alt.when("datum.selected")
    return (
        nodes.mark_rect(cornerRadius=4, height=_ROW - 4, cursor="pointer", strokeWidth=1.5)
        .encode(
            x2="x2:Q",
            fill=alt.Fill("kind:N", scale=scale, legend=None),
            fillOpacity=selected.then(alt.value(1)).otherwise(alt.value(0.14)),
            stroke=selected.then(alt.value(colours.text)).otherwise(
                alt.Stroke("kind:N", scale=scale, legend=None)
            ),
            strokeDash=alt.when("datum.bound").then(alt.value([1, 0])).otherwise(alt.value([4, 3])),
            strokeOpacity=alt.when("datum.kind === 'tool'")
            .then(alt.value(0))
            .otherwise(alt.value(0.9)),
            description="description:N",
            tooltip="description:N",
        )
        .add_params(picked_by("card"))
        .properties(name="nodes")
    )


def _names(nodes: alt.Chart, colours: Palette) -> alt.Chart:
    colour = alt.when("datum.selected").then(alt.value("white")).otherwise(alt.value(colours.text))
    return nodes.mark_text(
        align="left", dx=7, fontSize=11.5, baseline="middle", cursor="pointer"
    ).encode(text="name:N", color=colour)


def _node_row(node: Node, graph: Graph, selected: str) -> dict[str, Any]:
    sources = [edge.source for edge in graph.edges]
    below = sources.count(node.id)
    description = node.name
    if node.kind == "orchestrator":
        description += f", may ask or call {below}"
    elif node.kind == "agent":
        description += f", {below} tools"
    if not node.bound:
        description += ", not bound here"
    return {
        "kind": node.kind,
        "name": node.name,
        "card": node.card,
        "bound": node.bound,
        "x": _START[node.kind],
        "x2": _END[node.kind],
        "y": node.row,
        "selected": node.id == selected,
        "description": description,
    }


def curve_rows(graph: Graph, selected: str) -> list[dict[str, Any]]:
    """Returns the points of every edge; the curve of each turns beside the column with more room."""
    nodes = {node.id: node for node in graph.nodes}
    rows: list[dict[str, Any]] = []
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
            rows.append(
                {
                    "edge": number,
                    "step": step,
                    "x": round(x, 4),
                    "y": y,
                    "selected": selected in (edge.source, edge.target),
                }
            )
    return rows
