"""An agent behind A2A, served by the protocol's own SDK, as a sub-agent of a deck."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kit.core.bodies.speech import Text
from kit.core.outcome import Usage
from kit.models.scripted import ScriptedModel
from kit.patterns.a2a.exchange import ASKER
from kit.patterns.a2a.server import serve_team
from kit.worlds.service.serve import serving
from tests.bridges.decks import ask, kit_over, write_deck
from tests.kits import failures
from tests.patterns.test_a2a import bound

pytestmark = pytest.mark.realtime


def words(text: str) -> Message:
    return Message(message_id="m", role=Role.ROLE_AGENT, parts=[Part(text=text)])


class Desk(AgentExecutor):
    """Does what the question says."""

    def __init__(self) -> None:
        self.was_cancelled = asyncio.Event()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        ids = (context.task_id or "", context.context_id or "")
        updater = TaskUpdater(event_queue, *ids)
        working = TaskStatus(state=TaskState.TASK_STATE_WORKING)
        await event_queue.enqueue_event(Task(id=ids[0], context_id=ids[1], status=working))
        text = context.get_user_input()
        assert context.message is not None
        user = context.message.metadata["user_id"]
        if "hang" in text:
            await updater.add_artifact([Part(text="Wait. ")], artifact_id="a")
            await asyncio.sleep(600)
        elif "take back" in text:
            await updater.add_artifact([Part(text="The Grand costs 80.")], artifact_id="a")
            await updater.add_artifact([Part(text="The Grand is full.")], artifact_id="a")
            await updater.add_artifact([Part(text="90 at the Ritz.")], artifact_id="b")
            await updater.complete()
        elif "at length" in text:
            await updater.add_artifact([Part(text="zx-" * 3_000_000)], artifact_id="a")
            await updater.complete()
        elif "break off" in text:
            await updater.add_artifact([Part(text="The Grand in Leeds has a")], artifact_id="a")
        elif "fail" in text:
            await updater.failed(words("zx-broken"))
        elif "ask back" in text:
            await updater.requires_input(words("Which day?"))
        else:
            await updater.add_artifact([Part(text=f"For {user}: ")], artifact_id="a")
            await updater.add_artifact([Part(text="noon.")], artifact_id="a", append=True)
            await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.was_cancelled.set()
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()


@asynccontextmanager
async def served(desk: Desk) -> AsyncGenerator[str]:
    """Yields the address of the desk's card."""
    routes: list[Any] = []
    app = Starlette(routes=routes)
    async with serving(app) as url:
        interface = AgentInterface(
            url=f"{url}/", protocol_binding="JSONRPC", protocol_version="1.0"
        )
        card = AgentCard(
            name="desk",
            description="A desk.",
            version="1",
            supported_interfaces=[interface],
            capabilities=AgentCapabilities(streaming=True),
            default_input_modes=["text/plain"],
            default_output_modes=["text/plain"],
            skills=[AgentSkill(id="desk", name="desk", description="A desk.", tags=["desk"])],
        )
        handler = DefaultRequestHandler(desk, InMemoryTaskStore(), card)
        app.router.routes += create_jsonrpc_routes(handler, "/")
        app.router.routes += create_agent_card_routes(card)
        yield f"{url}/.well-known/agent-card.json"
        await handler.aclose()


async def test_an_agent_behind_its_card_answers_and_what_it_spent_is_not_known(tmp_path: Path):
    async with served(Desk()) as card:
        reply = await ask(write_deck(tmp_path, {"desk": card}), "desk")
    assert reply.text == "For visitor: noon."
    assert reply.outcomes[0].usage == Usage(untold_tokens=1, untold_costs=1)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Please fail.", "exception"),
        ("Please ask back.", "insufficient"),
        ("Please break off.", "unavailable"),
        ("Please answer at length.", "contract_violation"),
    ],
)
async def test_one_that_fails_asks_back_breaks_off_or_never_ends_is_a_failure_of_that_agent(
    tmp_path: Path, message: str, reason: str
):
    async with (
        served(Desk()) as card,
        kit_over(write_deck(tmp_path, {"desk": card}), "desk") as kit,
    ):
        reply = await kit.ask(message, kit.session("s"))
    assert [failure.reason for failure in failures(reply)] == [reason]
    assert "zx-" not in reply.text
    assert "The Grand" not in reply.text


async def test_what_an_agent_takes_back_is_no_part_of_its_answer_and_what_it_makes_stands_apart(
    tmp_path: Path,
):
    async with (
        served(Desk()) as card,
        kit_over(write_deck(tmp_path, {"desk": card}), "desk") as kit,
    ):
        reply = await kit.ask("Please take back.", kit.session("s"))
    assert reply.text == "The Grand is full.\n\n90 at the Ritz."


@asynccontextmanager
async def foreign(description: str, *updates: Any) -> AsyncGenerator[str]:
    """Yields the address of the card of an agent of no SDK, which answers every question by these updates."""
    own_url = ""

    async def card(_: Request) -> Response:
        interface = {"url": f"{own_url}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        return JSONResponse(
            {
                "name": "desk",
                "description": description,
                "version": "1",
                "supportedInterfaces": [interface],
                "capabilities": {"streaming": True},
                "defaultInputModes": ["text"],
                "defaultOutputModes": ["text"],
                "skills": [],
            }
        )

    async def answer(request: Request) -> Response:
        number = (await request.json())["id"]
        lines = [
            f"data: {json.dumps({'jsonrpc': '2.0', 'id': number, 'result': update})}\n\n"
            for update in updates
        ]
        return Response("".join(lines), media_type="text/event-stream")

    routes = [Route("/agent-card.json", card), Route("/", answer, methods=["POST"])]
    async with serving(Starlette(routes=routes)) as url:
        own_url = url
        yield f"{url}/agent-card.json"


def artifact_of(task: str, text: str) -> dict[str, Any]:
    artifact = {"artifactId": "a", "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": task, "contextId": "c", "artifact": artifact}}


def status_of(task: str, state: str) -> dict[str, Any]:
    return {"statusUpdate": {"taskId": task, "contextId": "c", "status": {"state": state}}}


DONE = (artifact_of("t1", "noon."), status_of("t1", "TASK_STATE_COMPLETED"))


@pytest.mark.parametrize(
    ("description", "updates", "reason"),
    [
        ("A desk.", DONE, None),
        # What is said of another task is none of this one's, and does not end it.
        (
            "A desk.",
            (
                status_of("t1", "TASK_STATE_WORKING"),
                artifact_of("t2", "Somebody else's."),
                status_of("t2", "TASK_STATE_COMPLETED"),
            ),
            "unavailable",
        ),
        ("A desk." * 2_000_000, DONE, "contract_violation"),
    ],
    ids=["whole", "another task", "a card without end"],
)
async def test_an_agent_of_no_sdk_answers_for_its_own_task_and_within_bounds(
    tmp_path: Path, description: str, updates: Sequence[Any], reason: str | None
):
    async with foreign(description, *updates) as card:
        reply = await ask(write_deck(tmp_path, {"desk": card}), "desk")
    reasons = [failure.reason for failure in failures(reply)]
    if reason is None:
        assert reasons == [] and reply.text == "noon."
    else:
        assert reasons == [reason] and "else's" not in reply.text


async def test_one_that_is_not_there_is_unavailable(tmp_path: Path):
    deck = write_deck(tmp_path, {"desk": "http://127.0.0.1:9/.well-known/agent-card.json"})
    reply = await ask(deck, "desk")
    assert [failure.reason for failure in failures(reply)] == ["unavailable"]


async def test_stop_reaches_the_agent_over_there(tmp_path: Path):
    desk = Desk()
    async with (
        served(desk) as card,
        kit_over(write_deck(tmp_path, {"desk": card}), "desk") as kit,
    ):
        turn = kit.ask("Please hang.", kit.session("s"), "direct")
        async for event in turn:
            # Until it has said something, nobody knows the name of its task.
            if isinstance(event.body, Text) and event.body.text.startswith("Wait"):
                break
        turn.cancel()
        assert (await turn).status == "cancelled"
        await asyncio.wait_for(desk.was_cancelled.wait(), 60)


@pytest.mark.req("S-7")
async def test_an_agent_that_a_kit_serves_answers_for_whom_the_bridge_asks(tmp_path: Path):
    """Its card says what it needs to be told: a client that is no kit reads there how to say for whom it asks."""
    team = bound({"points": ScriptedModel(*["You have 12 points."] * 2)})
    app = Starlette()
    async with serving(app) as url:
        peers = serve_team(team, url)
        app.mount("/", peers.app)
        address = f"{url}/points/.well-known/agent-card.json"
        reply = await ask(write_deck(tmp_path, {"points": address}), "points")
        async with httpx.AsyncClient() as http:
            card = (await http.get(address)).json()
        await peers.aclose()
    assert reply.status == "ok" and "You have 12 points." in reply.text
    (extension,) = card["capabilities"]["extensions"]
    assert extension["uri"] == ASKER and extension["required"]
    for name in ("tenant_id", "user_id", "x-principal"):
        assert name in extension["description"]


@pytest.mark.req("S-7")
@pytest.mark.parametrize(
    ("names", "header"),
    [
        ({}, "acme/alice"),
        ({"tenant_id": "acme", "user_id": "alice"}, "acme/bob"),
        ({"tenant_id": "", "user_id": ""}, "/"),
        ({"tenant_id": "acme"}, "acme/alice"),
    ],
)
async def test_a_client_that_does_not_say_for_whom_it_asks_is_turned_away_and_nobody_is_asked(
    names: dict[str, str], header: str
):
    peers = serve_team(
        bound({"points": ScriptedModel("You have 12 points.")}), "http://peers.internal"
    )
    message = {
        "messageId": "m",
        "role": "ROLE_USER",
        "parts": [{"text": "How many points?"}],
        "metadata": names,
    }
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {"message": message},
    }
    async with httpx.AsyncClient(transport=httpx.ASGITransport(peers.app)) as http:
        headers = {"x-principal": header, "A2A-Version": "1.0"}
        response = await http.post("http://peers.internal/points", json=body, headers=headers)
    await peers.aclose()
    assert response.json()["result"]["task"]["status"]["state"] == "TASK_STATE_REJECTED"
    assert "12 points" not in response.text
