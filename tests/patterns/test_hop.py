"""What a call to a peer costs: the bytes that cross, the time they take, and what was spent there;
in turn, cell and report."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from starlette.applications import Starlette

from kit.bench.grid.cell import cells
from kit.bench.grid.hops import hop_counts, hop_times
from kit.bench.grid.report import compare_run, report
from kit.bench.grid.results import tidy
from kit.bench.statistics.measures import PEER_MEASURES
from kit.core.bodies.call import Hop
from kit.core.model import ModelSpec
from kit.models.scripted import ScriptedModel
from kit.patterns.a2a import remote
from kit.patterns.a2a.client import RemoteAgent
from kit.patterns.a2a.server import peer_card, serve_team
from kit.runtime.context import Agent
from kit.runtime.handle import Reply
from kit.runtime.team import Team, bind
from kit.stores.sqlite import SqliteStore
from kit.tools.asgi_transport import StreamingASGITransport
from kit.worlds.service.serve import listen, serving
from tests.grids.test_grid import play, spec_of
from tests.kits import SmallKit, answering, asks, bodies, small_deck, spans, stitched
from tests.patterns.test_a2a import Foreign, ask, bound, hopping

PRICED = ModelSpec(key="priced", provider="offline", price_in=1.0, price_out=2.0)
BESIDE: dict[str, Any] = {
    "patterns": ["mediated", "a2a"],
    "baseline": {"pattern": "mediated"},
    "verdicts": ["exact", "seconds"],
}


def hops_of(reply: Reply) -> list[Hop]:
    return bodies(reply, Hop)


class CountedBytes(httpx.AsyncBaseTransport):
    """A socket whose bodies are counted."""

    def __init__(self) -> None:
        self.wire, self.bytes_out, self.bytes_in = httpx.AsyncHTTPTransport(), 0, 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.bytes_out += len(request.content)
        response = await self.wire.handle_async_request(request)
        return httpx.Response(
            response.status_code, headers=response.headers, stream=self.Body(self, response)
        )

    async def aclose(self) -> None:
        await self.wire.aclose()

    class Body(httpx.AsyncByteStream):
        def __init__(self, counter: "CountedBytes", response: httpx.Response):
            self.counter, self.response = counter, response

        async def __aiter__(self) -> AsyncGenerator[bytes]:
            async for chunk in self.response.aiter_raw():
                self.counter.bytes_in += len(chunk)
                yield chunk

        async def aclose(self) -> None:
            await self.response.aclose()


@pytest.mark.realtime
@pytest.mark.req("SAT-28")
async def test_over_a_socket_a_hop_counts_what_crossed_what_that_took_and_what_the_peer_spent():
    models: Any = {"shop": (answering("Deals at Café Zoë.", 0.1), PRICED)}
    models["orchestrator"] = ScriptedModel(asks("shop"), stitched)
    team = bind(small_deck(["shop"]), models)
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    peers, transport = serve_team(team, f"http://127.0.0.1:{port}"), CountedBytes()
    async with (
        serving(peers.app, port=port) as url,
        httpx.AsyncClient(transport=transport, timeout=120) as http,
        httpx.AsyncClient(timeout=120) as reader,
    ):
        card = await A2ACardResolver(reader, f"{url}/shop").get_agent_card()
        assert (card.name, card.description) == ("shop", "Answers questions about shop.")
        reply = await ask(SmallKit(remote(team, url, http), SqliteStore(":memory:")))
        await peers.aclose()
    [hop], [span], [outcome] = hops_of(reply), spans(reply, "agent"), reply.outcomes
    # All but the envelope of JSON-RPC, and the frames of the stream.
    assert hop.messages >= 3 and 0 <= transport.bytes_out - hop.bytes_out < 150
    assert 0 <= transport.bytes_in - hop.bytes_in < 200 * (hop.messages - 1)
    whole = span.ended - span.started
    assert hop.seconds is not None and 0 < hop.writing < hop.seconds < whole
    assert hop.peer_seconds is not None and hop.peer_seconds >= 0.1
    assert hop.seconds + hop.peer_seconds <= whole, "what is neither stands outside of both"
    assert hop.usage is not None and hop.usage == outcome.usage
    assert hop.usage.model_calls == 1 and hop.usage.cost and hop.usage.cost == reply.usage.cost


def foreign_peers(ending: str, team: Team) -> Team:
    """The same team with its sub-agents behind peers that are no kit."""
    agents: dict[str, Agent] = {}
    for card in team.orchestrator.sub_cards.values():
        peer = peer_card(card, f"http://{card.id}.internal/a2a")
        handler = DefaultRequestHandler(Foreign(ending), InMemoryTaskStore(), peer)
        app = Starlette(routes=create_jsonrpc_routes(handler, "/a2a"))
        http = httpx.AsyncClient(transport=StreamingASGITransport(app))
        client = ClientFactory(ClientConfig(httpx_client=http)).create(peer)
        agents[card.id] = RemoteAgent(card, client, team.deck.policy(card), 8.0)
    return team.with_agents(agents)


@pytest.mark.req("SAT-28")
@pytest.mark.parametrize("ending", ["artifact", "failure"])
async def test_what_a_peer_spent_that_is_no_kit_is_unknown_and_not_nothing(ending: str):
    reply = await ask(
        SmallKit(foreign_peers(ending, bound({"shop": answering("x")})), SqliteStore(":memory:"))
    )
    [hop] = hops_of(reply)
    assert (hop.usage, hop.seconds, hop.peer_seconds) == (None, None, None)
    assert hop.bytes_out and hop.bytes_in
    figures = hop_counts([hop]) | hop_times([hop])
    unknown = {name for name, value in figures.items() if value is None}
    spent = {f"peer_{name}" for name in ("model_calls", "input_tokens", "output_tokens", "cost")}
    assert unknown == {*spent, "peer_seconds", "hop_ms"}


async def test_a_peer_that_is_given_up_leaves_what_was_heard_of_it():
    async with hopping({"shop": answering("late", 30.0)}) as kit:
        reply = await ask(kit)
    [hop] = hops_of(reply)
    assert (
        hop.messages == 2
        and hop.seconds is None
        and hop.usage is not None
        and hop.usage.model_calls == 1
    )


async def test_a_peer_that_claims_to_have_worked_for_longer_than_it_was_asked_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
):
    from kit.patterns.a2a import server

    async with hopping({"shop": answering("Deals.", 1.0)}) as kit:
        real = server.report_metadata

        def boastful(events: Any, outcome: Any = None) -> Any:
            timing = None if outcome is None else outcome.timing.model_copy(update={"ended": 1e6})
            return real(events, outcome and outcome.model_copy(update={"timing": timing}))

        monkeypatch.setattr(server, "report_metadata", boastful)
        reply = await ask(kit)
    [hop] = hops_of(reply)
    assert (hop.seconds, hop.peer_seconds) == (None, None)


@pytest.mark.req("SAT-28")
def test_a_cell_over_a2a_has_its_hop_in_its_figures_and_in_the_report_and_other_patterns_have_none(
    tmp_path: Path,
):
    spec = spec_of(tmp_path, **BESIDE, hop={"ms": 200, "ms_per_kb": 0})
    run, rows = play(spec, tmp_path / "out")
    over = [row for row in rows if row["pattern"] == "a2a"]
    plain = [row for row in rows if row["pattern"] == "mediated"]
    for row, beside in zip(over, plain, strict=True):
        assert row["case"] == beside["case"] and row["input_tokens"] == beside["input_tokens"]
        assert row["hops"] == len(row["called"]) or row["failed"]
        # The hop is in the turn's own seconds.
        assert row["seconds"] - beside["seconds"] >= 0.4 - 1e-6
        assert 0 < row["peer_input_tokens"] < row["input_tokens"]
        assert 0 < row["peer_model_calls"] < row["model_calls"]
        assert row["hop_bytes"] > 1000 * row["hops"]
        assert row["hop_ms"] == pytest.approx(400 * row["hops"], rel=0.01)
    nothing = {row["value"] for row in tidy(plain, PEER_MEASURES)}
    assert nothing == {0} and not any("hops" in row for row in plain)
    _, verdicts = compare_run(spec, tmp_path / "out")
    [slower] = [verdict for verdict in verdicts if verdict.scorer == "seconds"]
    assert slower.difference.value >= 0.4
    text = report(spec, run).partition("## Calls to peers")[2]
    assert "by the law of the grid: 200 ms a message" in text
    assert "a2a, hop_bytes: mean of" in text and "mediated, hop" not in text


def test_the_link_is_part_of_a_cell_over_a2a_and_of_no_other(tmp_path: Path):
    def keys(hop: object) -> dict[str, set[str]]:
        spec = spec_of(tmp_path, **BESIDE, hop=hop)
        return {
            pattern: {cell.key for cell in cells(spec) if cell.pattern == pattern}
            for pattern in ("a2a", "mediated")
        }

    near, far, measured = keys({"ms": 1}), keys({"ms": 50}), keys("loopback")
    assert near["mediated"] == far["mediated"] == measured["mediated"]
    assert near["a2a"].isdisjoint(far["a2a"]) and far["a2a"].isdisjoint(measured["a2a"])
