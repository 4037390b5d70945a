"""The kit over OpenSearch by one setting: what its users and operators see is what they see over a file."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kit.core.errors import StoreError
from kit.settings import Settings
from kit.stores.documents.protocol import EventFilter, PlanFilter
from kit.stores.opening import open_store
from kit.stores.opensearch.address import address_of
from tests.cli.test_cli import refused, run
from tests.effort import allowance
from tests.opensearch_server import new_documents, server
from tests.plan_kits import Rows, opened_plans
from tests.stores.test_copying import VECTOR
from tests.stores.test_documents import ANN, BY, EVE, a_memory, a_plan, a_soul, an_event

pytestmark = [pytest.mark.opensearch, pytest.mark.realtime]
PASSING = {
    "plan_id",
    "task_id",
    "session_id",
    "ts",
    "seq",
    "event_id",
    "duration_ms",
    "lock_wait_ms",
}
"""What differs between two runs of the same."""


async def played(folder: Path, documents: str | None) -> list[Any]:
    """Has one plan made and carried out; returns the answer, the steps, their outputs and the events."""
    folder.mkdir()
    async with opened_plans(folder, Rows(), documents=documents) as kit:
        reply = await kit.ask("rank the outlets", kit.session("s1", "acme", "ann"))
        stores = kit.store.open_documents()
        (plan,) = await stores.plans.of(ANN)
        outputs: list[Any] = []
        for step in plan.steps:
            memory = await stores.memory.read(ANN, step.memory_key or "")
            outputs.append(memory and memory.value)
        events = await stores.events.query(EventFilter(tenant_id="acme"))
        session = await stores.sessions.read(ANN, "s1")
        assert session is not None
        # Events of steps that run side by side have no order.
        log = sorted(str(event.model_dump(exclude=PASSING | {"payload"})) for event in events)
        steps = [(step.task, step.status, step.skills) for step in plan.steps]
        return [reply.text, plan.status, steps, outputs, log, len(session.messages)]


@pytest.mark.req("AS-11", "AS-24", "AS-18", "K-9")
async def test_the_same_plan_comes_to_the_same_end_over_a_file_and_over_opensearch(
    tmp_path: Path,
) -> None:
    documents = new_documents()
    over_file = await played(tmp_path / "file", None)
    assert await played(tmp_path / "opensearch", documents) == over_file
    assert over_file[1] == "complete" and len(over_file[4]) > 5
    # In the file of the turns there is nothing of the plan, and in OpenSearch nothing of the turn.
    with closing(open_store(str(tmp_path / "opensearch" / "kit.db"))) as store:
        assert len(store.turns()) == 1
        assert await store.open_documents().plans.of(ANN) == []


def test_a_setting_names_it_and_its_password_is_a_secret() -> None:
    settings = Settings.read({"KIT_DOCUMENTS": "opensearch+https://kit:correct-horse@search:9200"})
    assert "correct-horse" in settings.secrets and "correct-horse" not in repr(settings)


def documents_of(place: Mapping[str, Any]) -> list[Any]:
    with closing(open_store(**place)) as store:
        return asyncio.run(_listed(store.open_documents()))


async def _listed(documents: Any) -> list[Any]:
    events = await documents.events.query(EventFilter(tenant_id="acme"))
    return [
        await documents.memory.nearest(ANN, "session", VECTOR, BY, session_id="s1"),
        {one.key for one in await documents.memory.search(ANN, "session", "red", session_id="s1")},
        [await documents.souls.of(who) for who in (ANN, EVE)],
        await documents.plans.of(ANN),
        [event.replace(seq=0) for event in events],
        await documents.events.count(EventFilter(tenant_id="acme"), ("event_type",)),
        await documents.plans.count(PlanFilter(tenant_id="acme"), ("status",)),
    ]


async def _fill(documents: Any) -> None:
    for number in range(3):
        memory = a_memory(f"k{number}", text=f"a red door\0{number}", locked_by=f"t{number}")
        if number:
            memory = memory.replace(embedding=VECTOR, embedder=BY)
        await documents.memory.write(memory)
        await documents.plans.create(a_plan(f"p{number}", created_at=float(number)))
        await documents.events.append(an_event(f"e{number}", payload=["\0"], ts=time.time()))
    await documents.plans.create(a_plan("p1", EVE))
    for who in (ANN, EVE):
        await documents.souls.put(a_soul(who, name=str(who)))
    await documents.souls.put(a_soul(user=False, name="Acme"))


@pytest.mark.req("AS-11")
def test_documents_move_into_opensearch_and_back_and_nothing_is_lost(tmp_path: Path) -> None:
    file, back = tmp_path / "file.db", tmp_path / "back.db"
    search = new_documents(dimension=256)
    with closing(open_store(str(file))) as store:
        asyncio.run(_fill(store.open_documents()))
    into = run("migrate", str(file), search)
    assert into.returncode == 0, into.stdout + into.stderr
    assert "agent_plans: 4 rows, the same in both" in into.stdout
    out = run("migrate", search, str(back))
    assert out.returncode == 0, out.stdout + out.stderr
    listed = documents_of({"place": str(file)})
    assert documents_of({"place": ":memory:", "documents": search}) == listed
    assert documents_of({"place": str(back)}) == listed
    refused(run("migrate", str(file), search), "is not empty: it has 3 documents of agent_memory")


async def test_souls_act_and_a_turn_that_cannot_read_them_is_refused_until_they_are_back(
    tmp_path: Path,
) -> None:
    documents = new_documents(timeout=2)
    async with opened_plans(tmp_path, Rows(), documents=documents) as kit:
        await kit.store.open_documents().souls.put(a_soul(user=False, name="Ada"))
        session = kit.session("s1", "acme", "ann")
        assert "You are called Ada." in kit.store.with_souls(session).tenant_persona
        with server().frozen():
            began = time.monotonic()
            with pytest.raises(StoreError, match="did not answer"):
                kit.ask("Hello", session)
            assert time.monotonic() - began < allowance(10)
        assert (await kit.ask("rank the outlets", session)).text


def test_doctor_says_of_indices_that_take_no_writes_that_they_take_none(tmp_path: Path) -> None:
    """So OpenSearch makes them where its disk is full."""
    # Takes a second, which whoever runs the other tests need not wait.
    from opensearchpy import OpenSearch

    place = {"KIT_STORE": str(tmp_path / "kit.db"), "KIT_DOCUMENTS": new_documents(dimension=256)}
    checked = run("doctor", **place)
    assert checked.returncode == 0, checked.stdout
    with closing(OpenSearch(server().url)) as client:
        name = address_of(place["KIT_DOCUMENTS"]).index("agent_souls", "acme")
        block = {"index.blocks.read_only_allow_delete": True}
        client.indices.put_settings(index=name, body=block)
    blocked = run("doctor", **place)
    assert blocked.returncode == 1 and "takes no writes" in blocked.stdout


def test_a_forgotten_user_is_forgotten_there_and_old_events_go(tmp_path: Path) -> None:
    place: dict[str, Any] = {
        "place": str(tmp_path / "kit.db"),
        "documents": new_documents(dimension=256),
    }
    with closing(open_store(**place)) as store:
        asyncio.run(_fill(store.open_documents()))
        old = an_event("old", EVE, ts=time.time() - 9 * 86_400)
        asyncio.run(store.open_documents().events.append(old))
        counts = store.forget(ANN)
        assert counts["agent_memory"] == counts["agent_plans"] == 3 and counts["agent_souls"] == 1
    with closing(open_store(**place, retention_days=7)) as store:
        documents = store.open_documents()
        until = time.monotonic() + 60
        while asyncio.run(documents.events.query(EventFilter(tenant_id="other"))):
            assert time.monotonic() < until, "the old event stays"
            time.sleep(0.2)
        assert asyncio.run(documents.plans.of(ANN)) == []
        assert len(asyncio.run(documents.plans.of(EVE))) == 1
        assert asyncio.run(documents.souls.of(ANN))[1] is None


def test_commands_speak_to_it(tmp_path: Path) -> None:
    settings = {
        "KIT_STORE": str(tmp_path / "kit.db"),
        "KIT_DOCUMENTS": new_documents(dimension=256),
    }
    documents = settings["KIT_DOCUMENTS"]
    with closing(open_store(settings["KIT_STORE"], documents=documents)) as store:
        asyncio.run(store.open_documents().events.append(an_event("seen", ANN)))
    events = ("data", "events", "--tenant", "acme", "--json")
    assert '"event_id":"seen"' in run(*events, **settings).stdout
    gone = {**settings, "KIT_DOCUMENTS": "opensearch+http://127.0.0.1:9"}
    refused(run(*events, **gone), "cannot be reached: start it, or correct KIT_DOCUMENTS")
