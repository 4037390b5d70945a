"""What is OpenSearch's own about the stores of documents; what every backend keeps is in test_documents.py.

Searches are half a minute late here unless the kit asks for what was written: the refresh interval is 30 s.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import closing
from fnmatch import fnmatch
from typing import Any

import pytest
import yaml

from kit.core.context import Principal
from kit.core.documents.document import (
    AgentEvent,
    AgentSession,
    Memory,
    Persona,
    Plan,
    PlanStep,
    Replan,
    SessionMessage,
    Soul,
)
from kit.core.errors import SettingsError, StorageSchemaError, StoreError
from kit.core.value import Value
from kit.home import HOME
from kit.stores.documents.protocol import Documents, EventFilter
from kit.stores.documents.sql import open_sessions
from kit.stores.opening import open_store
from kit.stores.opensearch.address import Address, address_of, id_of
from kit.stores.opensearch.templates import KINDS
from tests.effort import allowance
from tests.opensearch_server import new_documents
from tests.stores.test_documents import (
    ANN,
    BY,
    EVE,
    Clock,
    a_memory,
    a_plan,
    a_soul,
    an_event,
)

pytestmark = pytest.mark.opensearch
DAY = 86_400.0
DESIGN: dict[type[Value], str] = {
    Memory: "id:keyword tenant_id:keyword session_id:keyword task_id:keyword user_id:keyword "
    "scope:keyword key:keyword text:text "
    "embedding:knn_vector source:keyword step_index:integer plan_id:keyword locked_by:keyword "
    "lock_expires:date created_at:date "
    "ttl_at:date",
    Soul: "id:keyword tenant_id:keyword user_id:keyword key:keyword persona policies:object updated_at:date",
    Persona: "name:keyword system_prompt:text tone:keyword language:keyword",
    AgentSession: "session_id:keyword tenant_id:keyword user_id:keyword state:keyword "
    "started_at:date last_active:date messages",
    SessionMessage: "msg_id:keyword role:keyword content:text ts:date",
    Plan: "plan_id:keyword session_id:keyword tenant_id:keyword user_id:keyword status:keyword replan_count:integer "
    "created_at:date completed_at:date steps replan_history",
    PlanStep: "step_index:integer task:text skills:keyword return_spec:object input_from_step:integer status:keyword "
    "task_id:keyword memory_key:keyword validated:boolean failure_reason:text started_at:date finished_at:date",
    Replan: "attempt:integer trigger:keyword failed_step:integer reason:text revised_at:date",
    AgentEvent: "event_id:keyword tenant_id:keyword session_id:keyword plan_id:keyword "
    "task_id:keyword event_type:keyword "
    "skill_id:keyword script_hash:keyword payload:object ts:date",
}
"""The mappings that were designed, by kind: `field:type`, an inner document without a type."""


class Opened:
    """Stores over indices of a test's own, and the client of an administrator."""

    def __init__(self, **options: Any):
        # Take a second, which whoever runs the other tests need not wait.
        from opensearchpy import OpenSearch

        from kit.stores.opensearch.documents import OpenSearchDocuments

        self.backend = OpenSearchDocuments(new_documents(**{"dimension": 3, **options}))
        self.clock = Clock()
        self.turns = open_store(":memory:")
        self.stores: Documents = self.backend.open(open_sessions(self.turns), self.clock)
        self.place: Address = self.backend.cluster.address
        self.client = OpenSearch(self.place.url)

    def close(self) -> None:
        self.backend.close()
        self.client.close()
        self.turns.close()

    def ids(self, kind: str) -> set[str]:
        """The ids of what the indices of a kind hold."""
        index = self.place.every_index(kind)
        self.client.indices.refresh(index=index, params={"ignore_unavailable": "true"})
        answer = self.client.search(
            index=index, body={"size": 1000}, params={"ignore_unavailable": "true"}
        )
        return {document["_id"] for document in answer["hits"]["hits"]}


@pytest.fixture
def opened() -> Iterator[Opened]:
    with closing(Opened()) as stores:
        yield stores


@pytest.fixture(params=["together", "apart"])
def either(request: pytest.FixtureRequest) -> Iterator[Opened]:
    with closing(Opened(tenants=request.param)) as stores:
        yield stores


@pytest.mark.req("AS-11", "AS-18")
def test_all_five_indices_are_strict_and_have_the_fields_that_were_designed(opened: Opened) -> None:
    inner = {"persona": "Persona", "messages": "SessionMessage", "steps": "PlanStep", "replan_history": "Replan"}  # fmt: skip
    designed = {kind.__name__: fields for kind, fields in DESIGN.items()}

    def check(kind: str, properties: dict[str, Any]) -> None:
        for pair in designed[kind].split():
            name, _, index = pair.partition(":")
            if index:
                assert properties[name]["type"] == index, (kind, name)
            else:
                check(inner[name], properties[name]["properties"])
            assert index != "object" or properties[name]["enabled"] is False

    day = asyncio.run(_with_an_event(opened))
    for kind, document in KINDS.items():
        name = opened.place.prefix + (day if kind == "agent_events" else kind)
        mappings = opened.client.indices.get_mapping(index=name)[name]["mappings"]
        assert mappings["dynamic"] == "strict"
        assert set(mappings["properties"]) == set(document.model_fields)
        check(document.__name__, mappings["properties"])


async def _with_an_event(opened: Opened) -> str:
    await opened.stores.events.append(an_event("e"))
    return "agent_events-1970.01.01"


@pytest.mark.req("AS-11", "AS-18")
async def test_what_no_schema_has_is_refused_by_the_index_as_well(opened: Opened) -> None:
    index = opened.place.index("agent_plans", "acme")
    with pytest.raises(Exception, match="strict_dynamic_mapping"):
        opened.client.index(index=index, body={"tenant_id": "acme", "mood": "good"})
    # What the check of the kit cannot know, such as a word that no index holds, is the same error.
    with pytest.raises(StorageSchemaError, match="32766"):
        await opened.stores.plans.create(a_plan().replace(task_type="x" * 40_000))


@pytest.mark.req("AS-11")
async def test_an_event_is_found_at_once_though_searches_are_half_a_minute_late(
    either: Opened,
) -> None:
    events = either.stores.events
    mine = EventFilter(tenant_id="acme", task_id="t1", event_type="skill.started")
    found: list[AgentEvent] = []
    for number in range(5):
        began = time.perf_counter()
        stored = await events.append(
            an_event(f"t1:pay:{number}", event_type="skill.started", task_id="t1", ts=time.time())
        )
        found = await events.query(mine)
        assert found[-1] == stored and len(found) == number + 1
        assert time.perf_counter() - began < allowance(20)
    assert [event.seq for event in found] == sorted(event.seq for event in found)


async def test_of_two_that_report_an_event_at_midnight_at_most_one_goes_on(opened: Opened) -> None:
    """Both may yield, which is safe; that both take the event for their own is not."""
    for number in range(10):
        reports = []
        for day in (0, 1):
            report = an_event(f"t1:pay:{number}", payload={"fence": day}, ts=DAY - 0.5 + day)
            reports.append(opened.stores.events.append(report))
        kept = await asyncio.gather(*reports)
        own = [event.payload == {"fence": day} for day, event in enumerate(kept)]
        stored = await opened.stores.events.query(EventFilter(tenant_id="acme"))
        here = [event for event in stored if event.event_id == f"t1:pay:{number}"]
        assert sum(own) <= 1 and len(here) <= 1


async def test_whole_days_go_with_their_index_and_of_the_last_one_what_is_older(
    either: Opened,
) -> None:
    events = either.stores.events
    for number, moment in enumerate((0.5, 1.5, 2.25, 2.75, 3.5)):
        await events.append(an_event(f"e{number}", ts=moment * DAY))
        await events.append(an_event(f"e{number}", EVE, ts=moment * DAY))
    names = either.backend.cluster.names(either.place.every_index("agent_events"))
    either.backend.sweep(3.5 * DAY, DAY)
    left = either.backend.cluster.names(either.place.every_index("agent_events"))
    assert {name[-10:] for name in names} - {name[-10:] for name in left} == {
        "1970.01.01",
        "1970.01.02",
    }
    for who in (ANN, EVE):
        kept = await events.query(EventFilter(tenant_id=who.tenant_id))
        assert [event.event_id for event in kept] == ["e3", "e4"]


async def test_more_events_than_an_answer_holds_come_in_order(opened: Opened) -> None:
    events = opened.stores.events
    for start in range(0, 620, 62):
        await asyncio.gather(
            *(events.append(an_event(f"{number:032x}")) for number in range(start, start + 62))
        )
    stored = await events.query(EventFilter(tenant_id="acme"), limit=10_000)
    assert len(stored) == 620
    assert [event.seq for event in stored] == sorted({event.seq for event in stored})


def rival(who: Principal) -> list[Value]:
    """One document of each kind, under ids that others know."""
    memory = a_memory(
        "k", who, scope="tenant", text="door", embedding=(1.0, 0.0, 0.0), locked_by="t1"
    )
    return [memory, a_plan("p1", who), a_soul(who, user=False), an_event("e1", who)]


async def write(stores: Documents, documents: list[Any]) -> None:
    memory, plan, soul, event = documents
    await stores.memory.write(memory)
    await stores.plans.create(plan)
    await stores.souls.put(soul)
    await stores.events.append(event)


@pytest.mark.req("AS-27")
@pytest.mark.parametrize("eve", [EVE, Principal(tenant_id="acme:k", user_id="ann")], ids=str)
async def test_who_knows_all_ids_of_another_tenant_reads_and_changes_nothing_of_it(
    either: Opened, eve: Principal
) -> None:
    stores = either.stores
    theirs = rival(ANN)
    await write(stores, theirs)
    ids = {kind: either.ids(kind) for kind in KINDS}
    # Reads.
    assert await stores.memory.read(eve, "k") is None
    assert await stores.plans.read(eve, "p1") is None
    assert await stores.souls.of(eve) == (None, None)
    assert await stores.plans.of(eve) == []
    assert await stores.events.query(EventFilter(tenant_id=eve.tenant_id)) == []
    assert await stores.memory.nearest(eve, "tenant", (1.0, 0.0, 0.0), BY, 99) == []
    assert await stores.memory.search(eve, "tenant", "door", 99) == []
    # Writes, deletions, locks.
    assert not await stores.memory.unlock(eve, "k", "t1")
    assert not await stores.souls.remove(eve.tenant_id)
    await write(stores, rival(eve))
    assert either.backend.forget(eve).keys() == {"agent_memory", "agent_souls", "agent_plans", "agent_events"}  # fmt: skip
    assert await stores.souls.remove(eve.tenant_id)
    left = {kind: either.ids(kind) for kind in KINDS}
    for kind in KINDS:
        assert ids[kind] <= left[kind]
    memory, plan, soul, _ = theirs
    assert await stores.memory.read(ANN, "k") == memory
    assert await stores.plans.read(ANN, "p1") == plan
    assert await stores.souls.of(ANN) == (soul, None)


async def test_a_document_of_another_tenant_under_an_own_id_is_given_to_nobody(
    opened: Opened,
) -> None:
    """Somebody else than the kit has written it: an id alone proves nothing."""
    foreign = a_plan("p1", EVE).model_dump(mode="json")
    index = opened.place.index("agent_plans", "acme")
    opened.client.index(index=index, id=id_of("acme", "p1"), body=foreign)
    with pytest.raises(StoreError, match="another tenant"):
        await opened.stores.plans.read(ANN, "p1")


@pytest.mark.req("AS-12", "AS-18")
async def test_the_nearest_of_a_tenant_are_found_however_many_nearer_ones_others_have(
    opened: Opened,
) -> None:
    memory = opened.stores.memory
    near = {"scope": "tenant", "embedding": (1.0, 0.0, 0.0)}
    await asyncio.gather(*(memory.write(a_memory(f"k{n}", EVE, **near)) for n in range(60)))
    for number in range(5):
        far = (0.1 * number, 1.0, 0.0)
        await memory.write(a_memory(f"k{number}", scope="tenant", embedding=far))
    await memory.write(a_memory("other", scope="user", embedding=(1.0, 0.0, 0.0)))
    found = await memory.nearest(ANN, "tenant", (1.0, 0.0, 0.0), BY, 5)
    assert [one.key for one in found] == ["k4", "k3", "k2", "k1", "k0"]
    assert {one.tenant_id for one in found} == {"acme"}


async def test_of_many_that_take_a_lock_at_once_one_gets_it(opened: Opened) -> None:
    async def take(number: int) -> bool:
        memory = a_memory("k", task_id=f"t{number}", locked_by=f"t{number}", value=number)
        try:
            await opened.stores.memory.write(memory)
        except StoreError:
            return False
        return True

    taken = await asyncio.gather(*map(take, range(12)))
    held = await opened.stores.memory.read(ANN, "k")
    assert sum(taken) == 1 and held is not None and held.value == taken.index(True)


@pytest.mark.req("AS-18")
def test_the_retention_policy_that_ships_is_for_the_events_of_every_day() -> None:
    text = (HOME / "kit" / "stores" / "opensearch" / "retention_policy.json").read_text()
    policy = json.loads(text)["policy"]
    (template,) = policy["ism_template"]
    for options in ("", "?tenants=apart"):
        name = address_of(f"opensearch+http://h{options}").index("agent_events", "acme")
        assert any(fnmatch(f"{name}-2026.11.28", one) for one in template["index_patterns"])
    states = {state["name"]: state for state in policy["states"]}
    (leaving,) = states[policy["default_state"]]["transitions"]
    assert states[leaving["state_name"]]["actions"] == [{"delete": {}}]
    assert "Never run" in policy["description"]


@pytest.mark.req("AS-27")
def test_the_roles_name_the_indices_that_there_are_and_say_where_they_were_tried() -> None:
    text = (HOME / "kit" / "stores" / "opensearch" / "roles.yml").read_text()
    assert "never loaded in 3.6" in text
    roles = yaml.safe_load(text)
    service, tenant, by_document = (
        roles[name]["index_permissions"][0]
        for name in ("kit_service", "kit_tenant_acme", "kit_tenant_by_document")
    )
    shared, apart = (
        address_of("opensearch+http://h"),
        address_of("opensearch+http://h?tenants=apart"),
    )
    for kind in KINDS:
        for name in (shared.index(kind, "acme"), apart.index(kind, "acme")):
            assert any(fnmatch(f"{name}-2026.11.28", one) for one in service["index_patterns"])
        other = apart.index(kind, "acme2")
        day = f"{other}-2026.11.28" if kind == "agent_events" else other
        assert not any(fnmatch(day, one) for one in tenant["index_patterns"])
    assert by_document["allowed_actions"] == ["read"] and "tenant_id" in by_document["dls"]


async def test_indices_of_an_earlier_kit_take_the_fields_that_have_come_since(
    opened: Opened,
) -> None:
    name = opened.place.index("agent_plans", "acme")
    indices = opened.client.indices
    earlier = indices.get_index_template(name=name)["index_templates"][0]["index_template"]
    del earlier["template"]["mappings"]["properties"]["failure_kind"]
    indices.put_index_template(name=name, body={**earlier, "_meta": {"digest": "earlier"}})
    indices.delete(index=name)
    indices.create(index=name)
    with pytest.raises(StorageSchemaError, match="failure_kind"):
        await opened.stores.plans.create(a_plan())
    again = opened.backend.open(opened.stores.sessions)
    await again.plans.create(a_plan())
    assert await again.plans.read(ANN, "p1") == a_plan()


def test_what_a_url_says_and_what_cannot_be_used() -> None:
    place = address_of(
        "opensearch+https://kit:p%40ss@search.internal:9200/prod-?tenants=apart&ca=/ca.pem"
    )
    assert (place.url, place.user, place.password) == (
        "https://search.internal:9200",
        "kit",
        "p@ss",
    )
    assert place.index("agent_plans", "acme") == "prod-agent_plans-acme"
    assert "p@ss" not in repr(place)
    # Tenants that a name of an index cannot hold get one that no other tenant can have.
    names = {place.index("x", tenant) for tenant in ("acme", "Acme", "acme-2", "a" * 64, "é")}
    assert len(names) == 5
    with pytest.raises(SettingsError, match="tenants"):
        address_of("opensearch+http://127.0.0.1:9200/?tenants=mixed")
