"""The typed client over real HTTP: what it gives back, and what it makes of refusals and lost connections."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kit import open_kit
from kit.cli.story import reply_line
from kit.core.context import Principal
from kit.core.event import INTERNAL, Event
from kit.runtime.act_ledger import DECLINED
from kit.service.client import EventStream, ServiceClient, ServiceError, ServiceUnavailable
from kit.service.limits import Limits
from kit.service.remote_turn import RemoteTurn
from kit.settings import HOME
from kit.tools.tool import ToolLimits
from tests.kits import OFFLINE
from tests.plan_kits import Rows, opened_plans
from tests.service.servers import Api, chat, serving_kit

pytestmark = pytest.mark.realtime
ALICE = Principal(tenant_id="acme", user_id="alice")


def client_of(api: Api, principal: Principal = ALICE) -> ServiceClient:
    return ServiceClient(str(api.http.base_url), principal)


async def read(stream: EventStream) -> list[Event]:
    return [event async for event in stream]


@pytest.mark.req("AS-22", "AS-24")
async def test_a_plan_is_asked_for_followed_told_of_and_found_again(tmp_path: Path) -> None:
    async with (
        opened_plans(tmp_path, Rows(idempotent=True)) as kit,
        serving_kit(kit) as api,
        client_of(api) as client,
    ):
        stream = client.stream("s1", "the best three")
        events = await read(stream)
        result = stream.result
        assert result is not None and result.status == "ok" and result.plan_id is not None
        stored = kit.store.events(result.turn_id, ALICE)
        assert events == [event for event in stored if event.kind not in INTERNAL]
        assert [plan.plan_id for plan in await client.plans()] == [result.plan_id]
        assert (await client.plan(result.plan_id)).status == "complete"
        assert (await client.trace(result.plan_id))[0].event_type == "user_message.received"
        (turn,) = await client.turns("s1")
        assert (turn.message, turn.response) == ("the best three", result.response)
        assert await read(client.follow(result.turn_id, from_seq=5)) == events[5:]
        key = {"idempotency_key": "k-1"}
        first = await client.run("s2", "the best two", **key)
        assert await client.run("s2", "the best two", **key) == first
        assert (await client.cancel_turn(first.turn_id)).status == "ok"


@pytest.mark.req("AS-22", "K-12")
async def test_a_plan_waits_for_its_users_answer_and_what_the_server_refuses_is_raised_in_its_words(
    tmp_path: Path,
) -> None:
    confirm = {"call_skill": ToolLimits(confirm="Call {skill}?")}
    rows = Rows()
    async with opened_plans(tmp_path, rows, tool_limits=confirm) as kit, serving_kit(kit) as api:
        async with client_of(api) as client:
            asked = await client.run("s1", "the best three")
            assert asked.status == "paused" and asked.plan_id is not None
            with pytest.raises(ServiceError, match="waits for an answer") as refused:
                await read(client.resume(asked.plan_id))
            assert refused.value.status == 409
            with pytest.raises(ServiceError, match="no such plan") as refused:
                await client.plan("plan_none")
            assert refused.value.status == 404
            with pytest.raises(ServiceError, match="session_id") as refused:
                await client.run("no id", "hello")
            assert refused.value.status == 422
            assert list(asked.questions.values()) == ["Call rows?"]
            by_name = dict.fromkeys(asked.questions, True)
            stream = client.answer(asked.plan_id, answers=by_name)
            await read(stream)
            # The second step asks as well.
            asks = stream.result
            assert asks is not None and (asks.status, len(rows.tasks)) == ("paused", 1)
            for name in (asked.plan_id, asked.turn_id):
                with pytest.raises(ServiceError, match=f"'{asks.turn_id}' waits for") as refused:
                    await read(client.answer(name, answers=True))
                assert refused.value.status == 409
            assert len(rows.tasks) == 1
            stream = client.answer(asks.turn_id, answers=True)
            await read(stream)
            assert stream.result is not None and stream.result.status == "ok"
            assert len(rows.tasks) == 2
        url = str(api.http.base_url)
    async with ServiceClient(url, ALICE) as client:
        with pytest.raises(ServiceUnavailable, match="does not answer"):
            await client.plans()


@pytest.mark.req("AS-22", "K-12")
async def test_a_turn_waits_for_its_users_answer_and_nobody_elses() -> None:
    settings = OFFLINE.with_(deck=HOME / "cards/gifts")
    async with (
        open_kit(settings) as kit,
        serving_kit(kit) as api,
        client_of(api) as client,
        client_of(api, ALICE.replace(user_id="mallory")) as mallory,
    ):
        stream = client.stream("s1", "redeem 500 points for a gift card")
        await read(stream)
        asked = stream.result
        assert asked is not None and asked.status == "paused" and asked.plan_id is None
        (question,) = asked.questions.values()
        assert "500 points" in question
        with pytest.raises(ServiceError) as refused:
            await read(mallory.answer(asked.turn_id, True))
        assert refused.value.status == 404
        answered = client.answer(asked.turn_id, answers=False)
        await read(answered)
        result = answered.result
        assert result is not None and result.turn_id == asked.turn_id and result.status == "ok"
        assert DECLINED in result.response
        with pytest.raises(ServiceError) as refused:
            await read(client.answer(asked.turn_id, True))
        assert refused.value.status == 409


async def test_a_tenant_with_too_many_turns_is_told_by_the_client_when_to_come_back() -> None:
    async with (
        chat(seconds=30, limits=Limits(turns_at_once=1)) as api,
        client_of(api) as client,
    ):
        turn = await RemoteTurn.begin(client, client.stream("s1", "which drink?"))
        with pytest.raises(ServiceError) as refused:
            await client.run("s2", "which drink?")
        assert (refused.value.status, refused.value.retry_after) == (429, 1.0)
        turn.cancel()
        assert (await turn).status == "cancelled"
        assert not len(api.kit.turns)
        with pytest.raises(ServiceError, match="no such turn"):
            async with client_of(api, Principal(tenant_id="acme", user_id="mallory")) as mallory:
                await mallory.cancel_turn(turn.id)


@asynccontextmanager
async def cutting(api: Api, sizes: list[int]) -> AsyncGenerator[str]:
    """Serves the API through connections that break after so many bytes of replies, one after the other."""
    target = urlsplit(str(api.http.base_url))

    async def pipe(reader: Any, writer: Any, most: float) -> None:
        while most > 0 and (data := await reader.read(min(most, 4_096))):
            writer.write(data)
            await writer.drain()
            most -= len(data)
        writer.close()

    async def serve(reader: Any, writer: Any) -> None:
        upstream, sink = await asyncio.open_connection(target.hostname, target.port)
        most = sizes.pop(0) if sizes else float("inf")
        await asyncio.wait(
            [
                asyncio.create_task(pipe(reader, sink, float("inf"))),
                asyncio.create_task(pipe(upstream, writer, most)),
            ],
            return_when=asyncio.FIRST_COMPLETED,
        )
        writer.close()
        sink.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    yield f"http://{host}:{port}"
    server.close()


@pytest.mark.req("AS-15")
async def test_a_stream_whose_connection_breaks_again_and_again_arrives_whole_and_once() -> None:
    message = "which\u2028drink\x85?"
    async with chat(seconds=0.3) as api:
        cuts = [0, 40, 400, 700, 1_500, 1_501, 3_000, 6_000]
        async with cutting(api, cuts) as url, ServiceClient(url, ALICE) as client:
            stream = client.stream("s1", message)
            events = await read(stream)
        assert not cuts
        assert stream.result is not None and stream.result.response == "It is tea."
        (turn,) = api.kit.store.turns()
        stored = api.kit.store.events(turn.id, ALICE)
        assert events == [event for event in stored if event.kind not in INTERNAL]


@pytest.mark.req("AS-24")
async def test_a_turn_of_a_service_is_followed_awaited_and_stopped_like_one_of_this_process(
    tmp_path: Path,
) -> None:
    """The swap: what is told of a turn is the same wherever it ran."""
    lines: list[dict[str, Any]] = []
    async with (
        opened_plans(tmp_path, Rows(idempotent=True)) as kit,
        serving_kit(kit) as api,
        client_of(api) as client,
    ):
        own = kit.ask("the best three", kit.session("s1", "acme", "alice"))
        remote = await RemoteTurn.begin(client, client.stream("s2", "the best three"))
        for turn in (own, remote):
            events = [event async for event in turn]
            reply = await turn
            assert events == [event for event in reply.events if event.kind not in INTERNAL]
            line = reply_line(reply)
            # The rest differs by ids alone.
            line["plan"] = reply.plan is not None and reply.plan.status
            line["routing"] = [outcome.result for outcome in reply.routing.outcomes]
            del line["turn_id"]
            lines.append(line)
    assert lines[0] == lines[1]
