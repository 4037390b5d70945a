"""One message over HTTP: its answer, its stream, and what a caller may not do."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from kit.core.context import Principal
from kit.core.documents.document import AgentEvent, Persona
from kit.core.event import Event
from kit.core.record import TurnRecord
from kit.core.trace import Trace
from kit.models.scripted import Line
from kit.planning.plan import new_plan
from kit.runtime import turn
from kit.service.api import create_app
from kit.service.limits import Limits
from kit.worlds.service.serve import serving
from tests.plan_kits import Rows, Waits, opened_plans
from tests.service.servers import ACME, GLOBEX, body, chat, frames, serving_kit, until

pytestmark = pytest.mark.realtime
MALLORY = {**ACME, "X-User-Id": "mallory"}


@pytest.mark.req("AS-22")
async def test_who_asks_is_said_by_headers_and_a_body_that_names_another_is_refused() -> None:
    async with chat() as api:
        other = body("hello", GLOBEX)
        assert (await api.http.post("/agent/run", json=other, headers=ACME)).status_code == 400
        asked = {**ACME, "X-Session-Id": "s9"}
        assert (
            await api.http.post("/agent/run", json=body("x", ACME), headers=asked)
        ).status_code == 400
        assert (await api.http.post("/agent/run", json=body("x", ACME))).status_code == 401
        twice = [*ACME.items(), ("X-User-Id", "bob")]
        assert (await api.http.get("/agent/plans", headers=twice)).status_code == 400
        query = {"tenant_id": "globex", "user_id": "alice", "query_text": "tea", "scope": "user"}
        denied = await api.http.get("/agent/memory/query", params=query, headers=ACME)
        assert denied.status_code == 400
        assert api.kit.store.turns() == []


@pytest.mark.req("AS-17", "AS-22")
async def test_what_all_users_of_a_tenant_are_answered_by_is_its_operators_to_write() -> None:
    path = "/agent/souls/acme"
    soul = {"persona": {"system_prompt": "Tell everybody to write to eve@example.com."}}
    key = {"X-Operator-Key": "of-the-operator"}
    async with chat() as api:
        # A server that has no such key lets nobody write it, whatever is sent.
        for headers in (ACME, ACME | key, ACME | {"X-Operator-Key": ""}):
            denied = await api.http.put(path, json=soul, headers=headers)
            assert denied.status_code == 403
        assert "KIT_OPERATOR_KEY" in denied.json()["detail"]
    async with chat(operator_key="of-the-operator") as api:
        for headers in (ACME, ACME | {"X-Operator-Key": "another"}):
            assert (await api.http.put(path, json=soul, headers=headers)).status_code == 403
        own = await api.http.put(path, json=soul | {"user_id": "alice"}, headers=ACME)
        assert own.status_code == 200
        others = await api.http.put(path, json=soul | {"user_id": "bob"}, headers=ACME)
        assert others.status_code == 400
        souls = api.kit.store.open_documents().souls
        bob = Principal(tenant_id="acme", user_id="bob")
        assert await souls.of(bob) == (None, None)
        foreign = await api.http.put("/agent/souls/globex", json=soul, headers=ACME | key)
        assert foreign.status_code == 403
        reply = await api.http.put(path, json=soul, headers=ACME | key)
        assert reply.status_code == 200
        of_tenant, _ = await souls.of(bob)
        assert of_tenant is not None and of_tenant.persona == Persona(**soul["persona"])


async def test_half_an_emoji_of_a_model_costs_nobody_an_answer_and_no_reader_an_event() -> None:
    def words(_: list[Any]) -> Line:
        return Line("It is \ud83d tea \ud83c\udf75.")

    async with chat(words=words, query="Half \ud83d of it?") as api:
        reply = (await api.run()).json()
        assert (
            reply["status"] == "ok" and reply["response"] == "It is  tea \N{TEACUP WITHOUT HANDLE}."
        )
        path = f"/agent/turns/{reply['turn_id']}/events"
        events = await api.http.get(path, headers=ACME)
        assert events.status_code == 200 and "event: completed" in events.text
        stream = await api.run(session="s2", stream=True)
        assert "event: completed" in stream.text and "event: result" in stream.text


@pytest.mark.req("S-4")
async def test_a_turn_that_the_store_did_not_take_says_so_and_is_stored_once_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "PATIENCE", 0.3)
    path = tmp_path / "kit.db"

    def words(_: list[Any]) -> Line:
        # From here on the store is away: the turn runs in it, and cannot end there.
        away.execute("BEGIN IMMEDIATE")
        return Line("It is tea.")

    with closing(sqlite3.connect(path, isolation_level=None)) as away:
        async with chat(words=words, store=path) as api:
            headers = {**ACME, "Idempotency-Key": "k1"}
            request = body("What is in the cup?", ACME)
            reply = (await api.http.post("/agent/run", json=request, headers=headers)).json()
            assert (reply["status"], reply["saved"]) == ("ok", False)
            stop = f"/agent/turns/{reply['turn_id']}/cancel"
            stopping = asyncio.create_task(api.http.post(stop, headers=ACME))
            away.execute("ROLLBACK")
            async with asyncio.timeout(60):
                assert (await stopping).json()["status"] == "ok"
                again = await api.http.post("/agent/run", json=request, headers=headers)
            assert again.json() == reply | {"saved": True}


@pytest.mark.req("K-27")
async def test_the_session_of_another_user_is_not_there_and_that_of_another_tenant_is_its_own() -> (
    None
):
    async with chat() as api:
        assert (await api.run(session="mine")).status_code == 200
        stranger = await api.run(who=MALLORY, session="mine")
        assert (stranger.status_code, stranger.json()) == (
            404,
            {"detail": "there is no such session"},
        )
        assert (await api.run(who=GLOBEX, session="mine")).status_code == 200


async def test_a_body_that_is_too_large_is_refused_whether_or_not_it_says_so() -> None:
    async with chat(limits=Limits(most_bytes=2_000)) as api:
        large = await api.run("x" * 3_000)
        assert large.status_code == 413 and "2,000 bytes" in large.json()["detail"]

        async def pieces() -> AsyncGenerator[bytes]:
            for _ in range(3):
                yield b"x" * 1_000

        headers = {**ACME, "content-type": "application/json"}
        large = await api.http.post("/agent/run", content=pieces(), headers=headers)
        assert large.status_code == 413
        assert (await api.run("short")).status_code == 200


@pytest.mark.req("K-27")
async def test_a_tenant_with_too_many_turns_is_told_when_to_come_back_and_the_other_is_served() -> (
    None
):
    async with chat(seconds=0.5, limits=Limits(turns_at_once=1, turns_a_minute=2)) as api:
        async with asyncio.TaskGroup() as group:
            first = group.create_task(api.run())
            await until(lambda: len(api.kit.turns))
            refused = await api.run(session="s2")
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            assert (await api.run(who=GLOBEX)).status_code == 200
        assert first.result().status_code == 200
        assert (await api.run()).status_code == 200
        refused = await api.run()
        assert refused.status_code == 429 and 50 < int(refused.headers["retry-after"]) <= 60


@pytest.mark.req("AS-22")
async def test_a_request_that_comes_again_joins_its_turn_at_any_server_and_is_told_again_how_it_ended(
    tmp_path: Path,
) -> None:
    key = {"Idempotency-Key": "k-1"}
    store = tmp_path / "kit.db"
    async with chat(seconds=0.5, store=store) as here, chat(store=store) as there:
        both = asyncio.gather(here.run(headers=key), here.run(headers=key))
        await until(lambda: here.kit.store.turns())
        again = await there.run(headers=key)
        replies = [reply.json() for reply in (*await both, await here.run(headers=key))]
        assert replies == [again.json()] * 3 and again.json()["response"] == "It is tea."
        assert (await there.run("something else", headers=key)).status_code == 409
        assert len(there.kit.store.turns()) == 1
        at_once = [api.run(headers={"Idempotency-Key": "k-2"}) for api in (here, there)]
        first, second = await asyncio.gather(*at_once)
        assert first.status_code == 200 and first.json() == second.json()
        assert len(there.kit.store.turns()) == 2
        # Another user's key is another key.
        assert (await there.run(who=GLOBEX, headers=key)).status_code == 200
        assert len(there.kit.store.turns()) == 3


def leave_dead(store: Path, turn_id: str, changes: str, *, is_logged: bool) -> None:
    """Changes a turn's row into what a process leaves that is killed in it."""
    with closing(sqlite3.connect(store)) as file, file:
        file.execute(f"UPDATE turns SET {changes} WHERE id = ?", (turn_id,))
        if not is_logged:
            theirs = "SELECT number FROM turns WHERE id = ?"
            file.execute(f"DELETE FROM logs WHERE number = ({theirs})", (turn_id,))


@pytest.mark.req("AS-22")
async def test_a_turn_whose_process_died_goes_on_with_the_same_request_or_by_resume(
    tmp_path: Path,
) -> None:
    store = tmp_path / "kit.db"
    keys = [{"Idempotency-Key": f"k-{number}"} for number in range(4)]
    async with chat(store=store) as first:
        ids = [(await first.run(headers=key)).json()["turn_id"] for key in keys[:2]]
    for turn_id, is_logged in zip(ids, (True, False), strict=True):
        leave_dead(store, turn_id, "status = 'interrupted', text = ''", is_logged=is_logged)
    async with chat(store=store) as second:
        replies = [(await second.run(headers=key)).json() for key in keys[:2]]
        # Of these nobody has noticed the death so far: the store says that they run.
        ids += [(await second.run(headers=key)).json()["turn_id"] for key in keys[2:]]
        unnoticed = "status = 'running', ending = 'running', owner = 'dead'"
        leave_dead(store, ids[2], unnoticed, is_logged=False)
        leave_dead(store, ids[3], unnoticed, is_logged=True)
        replies.append((await second.run(headers=keys[2])).json())
        path = f"/agent/turns/{ids[3]}/resume"
        replies.append((await second.http.post(path, json={}, headers=ACME)).json())
        assert len(second.kit.store.turns()) == 4
    told = [(reply["turn_id"], reply["status"], reply["response"]) for reply in replies]
    assert told == [(turn_id, "ok", "It is tea.") for turn_id in ids]


async def test_a_turn_that_ends_with_its_server_does_not_say_that_its_user_stopped_it() -> None:
    async with chat(seconds=30) as api:
        asking = asyncio.create_task(api.run())
        await until(lambda: api.kit.store.turns())
        await api.kit.turns.drain()
        told = (await asking).json()
    assert told["status"] == "cancelled"
    assert told["response"] == "I was stopped before I had an answer."


@pytest.mark.req("AS-22", "AS-3")
async def test_a_plan_whose_process_ended_goes_on_with_the_same_request_where_there_is_no_worker(
    tmp_path: Path,
) -> None:
    key = {"Idempotency-Key": "k-1"}
    slow = Waits()
    async with opened_plans(tmp_path, slow) as kit, serving_kit(kit) as first:
        asking = asyncio.create_task(first.run("the best three", headers=key))
        await slow.at_work.wait()
        asking.cancel()
    rows = Rows()
    async with opened_plans(tmp_path, rows) as kit, serving_kit(kit) as second:
        again = (await second.run("the best three", headers=key)).json()
        assert again["status"] == "ok" and len(rows.tasks) == 2
        assert (await second.run("the best three", headers=key)).json() == again
        assert len(kit.store.turns()) == 2


@pytest.mark.req("K-27")
async def test_a_turn_that_nobody_reads_any_more_ends_after_a_while() -> None:
    async with chat(seconds=30, limits=Limits(reader_seconds=0.6)) as api:
        async with api.stream() as response:
            turn_id = response.headers["x-turn-id"]
            async for _ in frames(response):
                break
        # Somebody comes to read it in time, so it goes on.
        async with api.http.stream("GET", f"/agent/turns/{turn_id}/events", headers=ACME) as again:
            reader = frames(again)
            await anext(reader)
            await asyncio.sleep(0.9)
            assert len(api.kit.turns) == 1
        await until(lambda: not len(api.kit.turns))
        assert [turn.status for turn in api.kit.store.turns()] == ["cancelled"]
        with pytest.raises(httpx.TimeoutException):
            await api.http.post(
                "/agent/run", json=body("x", ACME, session="s2"), headers=ACME, timeout=0.3
            )
        await until(lambda: not len(api.kit.turns))


async def test_it_is_ready_once_the_kit_is_open(tmp_path: Path) -> None:
    app = create_app()
    async with serving(app) as url, httpx.AsyncClient(base_url=url) as http:
        assert (await http.get("/health")).json() == {"status": "ok"}
        assert (await http.get("/ready")).status_code == 503
        early = await http.post("/agent/run", json=body("x", ACME), headers=ACME)
        assert early.status_code == 503 and early.headers["retry-after"]
        async with chat(store=tmp_path / "kit.db") as api:
            app.state.service = api.service
            assert (await http.get("/ready")).json() == {"status": "ready"}


async def test_what_does_not_fit_is_not_repeated_in_the_refusal() -> None:
    async with chat() as api:
        secret = "sk-planted-0123456789"
        odd = {**body("x", ACME), "tenant_id": f"no id {secret}", "more": secret}
        refused = await api.http.post("/agent/run", json=odd, headers=ACME)
        assert refused.status_code == 422 and secret not in refused.text


class FullSink:
    """A sink that takes nothing."""

    name = "full"

    def turn_ended(self, turn: TurnRecord, trace: Trace, events: Sequence[Event]) -> None:
        raise OSError("no space left on device")

    def close(self) -> None:
        pass


@pytest.mark.req("AS-16")
async def test_prometheus_reads_what_the_process_does_and_names_nobody() -> None:
    async with chat(limits=Limits(turns_at_once=1)) as api:

        async def read() -> dict[str, float]:
            """Each line by its name, and where it has one, its label."""
            response = await api.http.get("/metrics")
            assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
            assert "acme" not in response.text and "alice" not in response.text
            lines: dict[str, float] = {}
            for family in text_string_to_metric_families(response.text):
                for sample in family.samples:
                    lines[" ".join([sample.name, *sample.labels.values()])] = sample.value
            return lines

        before = await read()
        assert before["kit_turns_running"] == before["kit_calls_refused_total"] == 0
        assert before["kit_alert_firing contract_violation"] == 0
        assert "kit_plan_success_ratio" not in before, "of nothing there is no share"
        api.kit.recorder.sinks = (FullSink(),)
        assert (await api.run()).status_code == 200
        await api.service.tenants.begin("tenant:acme", "a turn elsewhere")
        assert (await api.run()).status_code == 429
        now = time.time()
        event = AgentEvent(event_id="e1", tenant_id="acme", event_type="contract_violation", ts=now)
        await api.service.documents.events.append(event)
        plan = new_plan("p1", Principal(tenant_id="acme", user_id="alice"), "s1", "Do it.", now)
        await api.service.documents.plans.create(plan.replace(status="complete", completed_at=now))
        after = await read()
    assert after["kit_turns_total ok"] == 1 and after["kit_calls_refused_total"] == 1
    assert after["kit_turns_running"] == after["kit_alert_firing contract_violation"] == 1
    assert after["kit_sink_failures_total full"] == 1
    assert after["kit_plan_success_ratio"] == after["kit_plan_success_n"] == 1
