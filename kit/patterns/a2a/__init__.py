"""A2A: the mediated turn with every sub-agent behind the Agent2Agent protocol, spoken by the real SDK on both sides."""

import os
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kit.compose.deck import Deck
from kit.core.extra import require
from kit.patterns.a2a.link import Link
from kit.patterns.agents_as_tools import run_mediated
from kit.runtime.context import Agent
from kit.runtime.pattern import Bind, Pattern
from kit.runtime.team import Team

if TYPE_CHECKING:
    import httpx
    from starlette.applications import Starlette


def serve_in_process(deck: Deck, bind: Bind, link: Link | None = None) -> Team:
    """The deck's team, its sub-agents served and called over A2A inside this process: the SDK on
    both sides, no wire between.

    Messages take what `link` says, and nothing without one.
    """
    from kit.tools.asgi_transport import StreamingASGITransport

    transport = partial(StreamingASGITransport, isolated=False)
    return _served(bind(deck), "http://peers.internal", transport, link)


def serve_on_loopback(deck: Deck, bind: Bind) -> Team:
    """The same, over HTTP and a real socket of this machine; only for a real clock. Raises OSError
    where none can be opened."""
    _prepare_sdk()
    require("serve", "uvicorn")
    from kit.patterns.a2a.loopback import LoopbackTransport

    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    return _served(bind(deck), url, partial(LoopbackTransport, listening=listening))


def _served(
    team: Team,
    url: str,
    transport: Callable[["Starlette"], "httpx.AsyncBaseTransport"],
    link: Link | None = None,
) -> Team:
    """Serves a team's sub-agents at a URL that `transport` leads to; returns the team that calls them there."""
    import httpx

    _prepare_sdk()
    from kit.patterns.a2a.server import serve_team

    peers = serve_team(team, url)
    http = httpx.AsyncClient(transport=transport(peers.app), timeout=None)
    return replace(remote(team, url, http, link), closing=(http.aclose, peers.aclose))


A2A = Pattern("a2a", run_mediated, serve_in_process, has_failsafe=True)
"""The mediated turn; what differs is where its sub-agents are."""


def a2a_over(link: Link | None) -> Pattern:
    """The same pattern in virtual time, where messages take what `link` says; None: over a loopback
    socket, on a real clock."""
    return replace(
        A2A, stage=serve_on_loopback if link is None else partial(serve_in_process, link=link)
    )


def remote(team: Team, url: str, http: "httpx.AsyncClient", link: Link | None = None) -> Team:
    """The same team with its sub-agents at `<url>/<id>`, each behind a client of its own; whoever
    opened `http` closes it."""
    _prepare_sdk()
    from kit.patterns.a2a.client import RemoteAgent, http_client
    from kit.patterns.a2a.server import peer_card

    agents: dict[str, Agent] = {}
    for card in team.orchestrator.sub_cards.values():
        client = http_client(http, peer_card(card, f"{url}/{card.id}"))
        policy = team.deck.policy(card)
        time_budget = (policy.time_budget_ms or 0) / 1000 or None
        agents[card.id] = RemoteAgent(card, client, policy, time_budget, link)
    return team.with_agents(agents)


def _prepare_sdk() -> None:
    """Switches the SDK's own tracing off: it opens a hundred spans a call, and the turn's trace has the hop already."""
    require("a2a", "a2a")
    os.environ.setdefault("OTEL_INSTRUMENTATION_A2A_SDK_ENABLED", "false")
