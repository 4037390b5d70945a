"""A2A: the real SDK on both sides, over a socket and inside the process; one trace, one contract,
on behalf of one principal."""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.client.client import Client, ClientCallContext
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskState,
    TaskStatus,
)
from langchain_core.tools import StructuredTool
from starlette.applications import Starlette

from kit.core.bodies.speech import Status
from kit.core.card import AgentCard, Handoff, HandoffField
from kit.core.context import DynamicContext, InheritedContext, Principal
from kit.core.outcome import AgentCall, Answer, Failure
from kit.models.scripted import Line, ScriptedModel
from kit.patterns import PATTERNS
from kit.patterns.a2a import remote
from kit.patterns.a2a.client import RemoteAgent
from kit.patterns.a2a.exchange import KEY, PRINCIPAL, Request, traceparent
from kit.patterns.a2a.server import peer_card, serve_team
from kit.runtime.team import Team, bind
from kit.runtime.turn import Reply, run_turn
from kit.stores.sqlite import SqliteStore
from kit.tools.asgi_transport import StreamingASGITransport
from kit.tools.tool import ToolResult, tool_context
from tests.kits import (
    ALICE,
    SmallKit,
    answering,
    asks,
    failing,
    failures,
    small_deck,
    spans,
    stitched,
)

BOB = ALICE.model_copy(update={"principal": Principal(tenant_id="acme", user_id="bob")})


URL = "http://peers.internal"
WAYS = pytest.mark.parametrize("way", ["inside", "wire"])


def bound(models: Mapping[str, Any], lead: Any = None, **deck: Any) -> Team:
    tools = deck.pop("tools", {})
    leading = lead or ScriptedModel(*[asks(*models), stitched] * 4)
    cards = small_deck(list(models), **deck)
    return PATTERNS["mediated"].team(
        cards, lambda deck: bind(deck, {**models, "orchestrator": leading}, tools)
    )


@asynccontextmanager
async def wired(
    team: Team, isolated: bool = False
) -> AsyncGenerator[tuple[SmallKit, httpx.AsyncClient]]:
    """A kit whose sub-agents are called over HTTP, JSON and a stream of bytes, without a socket;
    and the client it calls with. `isolated`: as if the far side were in another process."""
    peers = serve_team(team, URL)
    async with httpx.AsyncClient(
        transport=StreamingASGITransport(peers.app, isolated=isolated), timeout=None
    ) as http:
        yield SmallKit(remote(team, URL, http), SqliteStore(":memory:")), http
    await peers.aclose()


@asynccontextmanager
async def hopping(
    models: Mapping[str, Any], lead: Any = None, way: str = "inside", **deck: Any
) -> AsyncGenerator[SmallKit]:
    """A small kit whose sub-agents are called over A2A inside the process: as in a grid, by way of the wire
    format, or apart, as if they were in another process."""
    team = bound(models, lead, **deck)
    if way != "inside":
        async with wired(team, isolated=way == "apart") as (kit, _):
            yield kit
        return
    team = PATTERNS["a2a"].team(team.deck, lambda _: team)
    try:
        yield SmallKit(team, SqliteStore(":memory:"))
    finally:
        await team.aclose()


async def ask(
    kit: SmallKit, message: str = "two things", session: Any = ALICE, **more: Any
) -> Reply:
    return await run_turn(message, session, kit, PATTERNS["a2a"], **more)


def told(reply: Reply) -> list[tuple[str, str]]:
    """What happened, without clocks and spans, and without what is said of the hop itself."""
    return [(e.kind, getattr(e.body, "agent", "")) for e in reply.events if e.kind != "hop"]


def tool_of(name: str, work: Any) -> dict[str, Any]:
    """The shop's card with one tool, which does this; for `hopping`."""
    schema = {"type": "object", "properties": {}}
    tool = StructuredTool(name=name, description="Works.", args_schema=schema, coroutine=work)
    card = AgentCard(id="shop", description="Deals.", model="offline", tools=(name,))
    return {"cards": [card], "tools": {name: tool}}


@WAYS
async def test_a_turn_over_the_hop_is_the_same_turn_with_the_same_events_at_the_same_times(
    way: str,
):
    models = {"shop": answering("Deals.", 1.0), "rewards": answering("4,975 points.", 2.0)}
    async with hopping(models, way=way) as kit:
        reply = await ask(kit)
    here = SmallKit(bound(models), kit.store)
    plain = await run_turn("two things", ALICE.model_copy(update={"id": "e2"}), here)
    assert reply.text == plain.text == "Deals. | 4,975 points."
    assert sorted(told(reply)) == sorted(told(plain)) and reply.usage == plain.usage
    assert times(reply) == times(plain)


def times(reply: Reply) -> list[tuple[Any, ...]]:
    """When each span began and ended."""
    return sorted(
        (round(span.started, 3), span.kind, span.agent, span.name, round(span.ended, 3))
        for span in reply.trace.spans
    )


@pytest.mark.req("SO-5")
async def test_one_trace_crosses_the_hop_its_id_in_traceparent_its_spans_under_the_callers():
    seen: list[str] = []

    async def note(request: httpx.Request) -> None:
        seen.append(request.headers["traceparent"])

    async with wired(bound({"shop": answering("Deals.")})) as (kit, http):
        http.event_hooks = {"request": [note]}
        reply = await ask(kit, "one thing", turn_id="0af7651916cd43dd8448eb211c80319c")
    span = spans(reply, "agent")[0]
    assert seen == [traceparent(reply.turn_id, span.id)]
    assert re.fullmatch(r"00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01", seen[0])
    named = traceparent("a turn of another name", span.id)
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", named)
    rows = [(depth, s.kind, s.name) for depth, s in reply.trace.rows()]
    assert rows[2:4] == [(1, "agent", "shop"), (2, "model", "work · scripted")], (
        "the far side's model call stands under its agent"
    )


@WAYS
async def test_progress_is_heard_while_the_far_side_works(way: str):
    async def look(**_: Any) -> str:
        tool_context().emit(Status(agent="shop", status="searching_offers"))
        await asyncio.sleep(2.0)
        return "found"

    model = ScriptedModel(Line(calls=[("look", {})]), "Deals.")
    async with hopping({"shop": model}, way=way, **tool_of("look", look)) as kit:
        reply = await ask(kit)
    [line] = [e for e in reply.events if e.kind == "status_line"]
    assert line.at == pytest.approx(0.0, abs=0.01) and reply.events[-1].at == pytest.approx(
        2.0, abs=0.01
    )
    assert [s.name for s in spans(reply, "tool")] == ["look"] and reply.usage.tool_calls == 1


@pytest.mark.parametrize(
    ("model", "reason"),
    [(failing(OSError("secret=/srv")), "exception"), (answering("late", 30.0), "timeout")],
)
@WAYS
async def test_what_goes_wrong_over_there_is_a_typed_failure_here_and_owned_up_to(
    model: ScriptedModel, reason: str, way: str
):
    lead = ScriptedModel(asks("shop", "rewards"), "Deals.", "Deals.")
    async with hopping({"shop": answering("Deals."), "rewards": model}, lead, way) as kit:
        reply = await ask(kit)
    failed = failures(reply)
    assert [(o.agent, o.axis, o.reason) for o in failed] == [("rewards", "invocation", reason)]
    assert "rewards" in reply.text and "Deals." in reply.text and "secret" not in reply.text
    if reason == "timeout":
        assert failed[0].timing is not None and failed[0].timing.seconds == pytest.approx(
            8.0, abs=0.01
        )


async def test_a_peer_that_is_not_there_is_unavailable():
    async def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused")

    async with hopping({"shop": answering("Deals.")}) as kit:
        team = remote(
            kit.team,
            "http://nowhere.internal",
            httpx.AsyncClient(transport=httpx.MockTransport(refuse)),
        )
        reply = await ask(replace(kit, team=team))
    assert [(o.reason, o.axis) for o in failures(reply)] == [("unavailable", "invocation")]


@pytest.mark.parametrize("after", [0.5, 1.5])
@WAYS
async def test_a_stopped_turn_stops_the_far_side_too(after: float, way: str):
    stopped: list[str] = []

    async def work(**_: Any) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.append("here")
            raise
        return "never"

    model = ScriptedModel(Line(calls=[("work", {})]))
    async with hopping({"shop": model}, way=way, **tool_of("work", work)) as kit:
        turn = run_turn("one thing", ALICE, kit, PATTERNS["a2a"])
        await asyncio.sleep(after)
        turn.cancel()
        reply = await turn
    assert (reply.status, stopped) == ("cancelled", ["here"])
    assert reply.events[-1].at == pytest.approx(after)
    ours = [
        t
        for t in asyncio.all_tasks()
        if t is not asyncio.current_task() and "_shutdown_watcher" not in repr(t)
    ]
    assert ours == []


@WAYS
async def test_the_far_side_remembers_each_caller_apart(way: str):
    model = ScriptedModel(*["Answer one.", "Answer two.", "Answer three."])
    async with hopping(
        {"shop": model}, ScriptedModel(*[asks("shop"), stitched] * 3), way=way
    ) as kit:
        await ask(kit, "first")
        await ask(kit, "second")
        await ask(kit, "third", BOB.model_copy(update={"id": "e3"}))
        agent = kit.team.agents["shop"]
        assert isinstance(agent, RemoteAgent)
        for stranger in (BOB.principal, ALICE.principal.model_copy(update={"tenant_id": "globex"})):
            await _sent(agent.client, _request("shop", stranger, episode=ALICE.id))
    assert [m.content for m in model.seen[1][1:]] == ["about shop", "Answer one.", "about shop"]
    assert [m.content for m in model.seen[2][1:]] == ["about shop"]
    strangers = [[m.content for m in thread[1:]] for thread in model.seen[3:]]
    assert strangers == [["hello"], ["hello"]], (
        "another user, and the same name in another tenant, under a known conversation"
    )


@WAYS
async def test_who_names_nobody_is_turned_away(way: str):
    model = ScriptedModel()
    async with hopping({"shop": model}, way=way) as kit:
        agent = kit.team.agents["shop"]
        assert isinstance(agent, RemoteAgent)
        updates = await _sent(
            agent.client, Message(message_id="m", role=Role.ROLE_USER, parts=[Part(text="hello")])
        )
    assert updates[-1].status.state == TaskState.TASK_STATE_REJECTED and model.seen == []


@WAYS
async def test_the_contract_holds_over_there_and_its_spend_is_counted_once_here(way: str):
    card = AgentCard.model_validate(
        {
            "id": "shop",
            "description": "D.",
            "model": "offline",
            "policy": {"tokens_out": 5, "time_budget_ms": 8000},
        }
    )
    async with hopping({"shop": answering("word " * 100)}, cards=[card], way=way) as kit:
        reply = await ask(kit)
    [outcome] = reply.outcomes
    assert isinstance(outcome, Failure) and outcome.reason == "budget"
    used = sum(span.usage.output_tokens for span in spans(reply, "model"))
    assert reply.usage.output_tokens == used


@pytest.mark.req("PC2-FR-12b")
@WAYS
async def test_a_lookup_that_met_a_foreign_principal_is_made_again_by_nobody_behind_the_hop(
    way: str,
):
    made: list[str] = []

    def find() -> tuple[str, ToolResult]:
        """Finds."""
        made.append("here")
        return "unavailable", ToolResult(text="unavailable", fault="principal_mismatch")

    tool = StructuredTool.from_function(find, response_format="content_and_artifact")
    cards = [
        AgentCard(id=name, description=f"About {name}.", model="offline", tools=("find",))
        for name in ("shop", "play")
    ]
    models = {card.id: ScriptedModel(Line(calls=[("find", {})]), "") for card in cards}
    lead = ScriptedModel(asks("shop"), asks("play"), stitched)
    async with hopping(models, lead, way, cards=cards, tools={"find": tool}) as kit:
        reply = await ask(kit)
    assert [failure.reason for failure in failures(reply)] == ["principal_mismatch"] * 2
    assert made == ["here"]


@pytest.mark.req("SO-22")
@pytest.mark.parametrize("way", ["inside", "wire", "apart"])
async def test_a_personal_value_that_crossed_to_one_agent_is_in_no_event_of_another_behind_the_hop(
    way: str,
):
    mail = "reader@example.org"
    handoff = Handoff(fields={"email": HandoffField(type="string", pii=True)})
    card = AgentCard(id="shop", description="Deals.", model="offline", handoff=handoff)
    models = {"shop": answering("Deals."), "play": answering(f"Sent to {mail}.")}
    fields = {"email": mail, "query": "deals", "intent_count": 1}
    lead = ScriptedModel(
        Line("Let me look.", calls=[("ask_shop", fields)]),
        asks("play", query=f"send it to {mail}"),
        "Done.",
    )
    async with hopping(models, lead, way, cards=[card]) as kit:
        reply = await ask(kit)
    shown = (
        "text",
        "text_replaced",
        "completed",
    )  # what the user reads may name what the user gave
    assert len(reply.outcomes) == 2
    for event in reply.events:
        assert event.kind in shown or mail not in event.model_dump_json()


class Foreign(AgentExecutor):
    """A peer that is no kit: it knows text and nothing else."""

    def __init__(self, ending: str):
        self._ending = ending

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        said = [Part(text=f"You asked: {context.get_user_input()}")]
        if self._ending == "message":
            await event_queue.enqueue_event(
                Message(message_id="r", role=Role.ROLE_AGENT, parts=said)
            )
            return
        task_id, context_id = context.task_id or "", context.context_id or ""
        status = TaskStatus(state=TaskState.TASK_STATE_WORKING)
        await event_queue.enqueue_event(Task(id=task_id, context_id=context_id, status=status))
        updater = TaskUpdater(event_queue, task_id, context_id)
        if self._ending != "failure":
            await updater.add_artifact(said)
        if self._ending == "artifact":
            await updater.complete()
        elif self._ending != "cut off":
            await updater.failed()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None: ...


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        ("message", "You asked: about shop"),
        ("artifact", "You asked: about shop"),
        ("failure", None),
        ("failure after words", None),
        ("cut off", None),
    ],
)
async def test_any_a2a_agent_can_stand_in_for_a_sub_agent(ending: str, text: str | None):
    reply = await ask_stranger(Foreign(ending))
    assert [o.text if isinstance(o, Answer) else None for o in reply.outcomes] == [text]


async def ask_stranger(executor: AgentExecutor) -> Reply:
    """A turn in which an A2A agent of somebody else stands in for the shop."""
    card = AgentCard(id="shop", description="Deals.", model="offline")
    peer = peer_card(card, "http://foreign.internal/a2a")
    handler = DefaultRequestHandler(executor, InMemoryTaskStore(), peer)
    app = Starlette(routes=create_jsonrpc_routes(handler, "/a2a"))
    async with (
        httpx.AsyncClient(transport=StreamingASGITransport(app)) as http,
        hopping({"shop": answering("x")}) as kit,
    ):
        client = ClientFactory(ClientConfig(httpx_client=http)).create(peer)
        team = kit.team.with_agents(
            {"shop": RemoteAgent(card, client, kit.team.deck.policy(card), 8.0)}
        )
        reply = await ask(replace(kit, team=team))
    await handler.aclose()
    return reply


async def _sent(
    client: Client, message: Message, headers: dict[str, str] | None = None
) -> Sequence[Any]:
    """The parts of a call's stream: tasks and status updates."""
    if KEY in message.metadata:
        who = Request.model_validate_json(str(message.metadata[KEY])).inherited.principal
        headers = {PRINCIPAL: str(who), **(headers or {})}
    stream = client.send_message(
        SendMessageRequest(message=message), context=ClientCallContext(service_parameters=headers)
    )
    updates: list[StreamResponse] = [update async for update in stream]
    return [getattr(update, update.WhichOneof("payload") or "task") for update in updates]


def _request(agent: str, principal: Principal = ALICE.principal, episode: str = "e9") -> Message:
    request = Request(
        call=AgentCall(call_id="c1", agent=agent, query="hello"),
        inherited=InheritedContext(principal=principal, episode_id=episode, locale="en"),
        dynamic=DynamicContext(date="2026-11-01", user_id=principal.user_id, locale="en"),
        caller="elsewhere",
        place="1.1",
    )
    metadata = {KEY: request.model_dump_json()}
    return Message(
        message_id="m",
        context_id=episode,
        role=Role.ROLE_USER,
        parts=[Part(text="hello")],
        metadata=metadata,
    )
