"""The contract of the five stores: whatever backend keeps the documents, this file holds. A new
backend joins `BACKENDS`."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kit.core.context import OPERATOR, Principal
from kit.core.documents.document import (
    AgentEvent,
    Memory,
    Persona,
    Plan,
    PlanStep,
    Scope,
    Soul,
)
from kit.core.errors import MemoryLockError, StorageSchemaError, StoreError, VersionConflict
from kit.runtime.clock import run_virtual
from kit.stores.documents.protocol import Documents, EventFilter, MemoryStore, PlanFilter
from kit.stores.documents.sql import open_documents, open_sessions
from kit.stores.opening import open_store
from kit.stores.turn_store import TurnStore
from tests.opensearch_server import new_documents
from tests.stores.conftest import DATABASES, new_place

ANN, BOB = Principal(tenant_id="acme", user_id="ann"), Principal(tenant_id="acme", user_id="bob")
EVE = Principal(tenant_id="other", user_id="ann")
BACKENDS = (
    *DATABASES,
    pytest.param("opensearch", marks=pytest.mark.opensearch),
)
BY = "vectors of a test"
"""The embedder of all vectors here but one."""


@dataclass
class Clock:
    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Backend:
    """A backend of three-dimensional vectors, and its clock."""

    stores: Documents
    sweep: Callable[[float, float], None]
    """Deletes memories that have expired by a moment, and events of more than so many seconds before it."""
    clock: Clock = field(default_factory=Clock)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    clock = Clock()
    if request.param == "opensearch":
        # Takes a second, which whoever runs the other backends need not wait.
        from kit.stores.opensearch.documents import OpenSearchDocuments

        with closing(OpenSearchDocuments(new_documents(dimension=3))) as documents:
            store = open_store(":memory:")
            yield Backend(documents.open(open_sessions(store), clock), documents.sweep, clock)
            store.close()
        return
    store = open_store(new_place(request.param, tmp_path))
    documents = open_documents(store, dimension=3, clock=clock)
    yield Backend(documents, store.sweep_documents, clock)
    store.close()


def a_memory(key: str, who: Principal = ANN, **fields: Any) -> Memory:
    return Memory.model_validate(
        {
            "id": key,
            "tenant_id": who.tenant_id,
            "user_id": who.user_id,
            "session_id": "s1",
            "scope": "session",
        }
        | {
            "key": key,
            "source": "planner",
            "created_at": 1.0,
            "task_id": "t1",
            "value": [key],
            "embedder": BY if fields.get("embedding") else None,
            **fields,
        }
    )


def a_plan(plan_id: str = "p1", who: Principal = ANN, **fields: Any) -> Plan:
    steps = (
        PlanStep(
            step_index=1,
            task="list",
            skills=("outlets",),
            return_spec={"shape": {"ids": "array<string>"}},
        ),
    )
    plan = Plan(
        plan_id=plan_id,
        session_id="s1",
        tenant_id=who.tenant_id,
        user_id=who.user_id,
        created_at=1.0,
        original_task="?",
    )
    return plan.replace(steps=steps, **fields)


def an_event(event_id: str, who: Principal = ANN, **fields: Any) -> AgentEvent:
    named = {
        "tenant_id": who.tenant_id,
        "session_id": "s1",
        "event_type": "skill.called",
        "ts": 1.0,
    }
    return AgentEvent.model_validate({"event_id": event_id, **named, **fields})


def a_soul(who: Principal = ANN, user: bool = True, **persona: Any) -> Soul:
    user_id = who.user_id if user else None
    return Soul(
        id=str(who),
        tenant_id=who.tenant_id,
        user_id=user_id,
        persona=Persona(**persona),
        updated_at=1.0,
    )


async def test_what_a_schema_refuses_is_not_written(backend: Backend) -> None:
    """A value that was made without validation is refused as well, before the backend sees it."""
    stores = backend.stores
    writes = [
        (stores.memory.write, a_memory("k").replace(scope="galaxy"), "scope"),
        (stores.memory.write, a_memory("k").replace(value=float("nan")), "JSON"),
        (stores.memory.write, a_memory("k").replace(text="\ud800"), "surrogate"),
        (stores.memory.write, a_memory("k").replace(embedding=(1.0, 2.0)), "2 numbers"),
        (
            stores.memory.write,
            a_memory("k").replace(embedding=(1.0, 2.0, 3.0)),
            "name of its embedder",
        ),
        (
            stores.memory.write,
            a_memory("k").replace(embedding=(1.0, float("nan"), 0.0)),
            "all finite",
        ),
        (stores.memory.write, a_memory("k").replace(user_id=None), "scope session"),
        (stores.souls.put, a_soul().replace(persona={"voice": "deep"}), "persona.voice"),
        (
            stores.plans.create,
            a_plan().replace(steps=(PlanStep(step_index=1, task="x").replace(skills=(3,)),)),
            "steps.0.skills.0",
        ),
        (stores.events.append, an_event("e").replace(duration_ms="long"), "duration_ms"),
    ]
    for write, document, words in writes:
        with pytest.raises(StorageSchemaError) as error:
            await write(document)  # pyright: ignore[reportArgumentType]
        assert words in str(error.value), str(error.value)
    assert await stores.memory.read(ANN, "k") is None and await stores.plans.read(ANN, "p1") is None
    assert await stores.events.query(EventFilter(tenant_id="acme")) == []


async def test_a_memory_comes_back_as_it_was_and_a_second_write_replaces_it(
    backend: Backend,
) -> None:
    memory = a_memory(
        "k", text="blue door", embedding=(0.5, 0.25, 1.0), value={"ids": ["o1", None, 2.5]}
    )
    await backend.stores.memory.write(memory)
    assert await backend.stores.memory.read(ANN, "k") == memory
    await backend.stores.memory.write(memory.replace(value=2, text="red door"))
    assert await backend.stores.memory.read(ANN, "k") == memory.replace(value=2, text="red door")
    assert await backend.stores.memory.search(ANN, "session", "blue", session_id="s1") == []
    assert (
        len(await backend.stores.memory.search(ANN, "session", "a red wall", session_id="s1")) == 1
    )


@pytest.mark.req("AS-30")
async def test_a_scope_says_who_reads_a_memory(backend: Backend) -> None:
    memory = backend.stores.memory
    for scope in ("session", "user", "tenant"):
        await memory.write(a_memory(scope, scope=scope, text="door", embedding=(1.0, 0.0, 0.0)))
    readers = {"ann": ANN, "bob": BOB, "eve": EVE}
    keys = {
        name: [key for key in ("session", "user", "tenant") if await memory.read(who, key)]
        for name, who in readers.items()
    }
    assert keys == {"ann": ["session", "user", "tenant"], "bob": ["tenant"], "eve": []}
    searches: list[tuple[Principal, Scope, str, list[str]]] = [
        (ANN, "session", "s1", ["session"]), (ANN, "session", "s2", []), (ANN, "user", "s2", ["user"]),
        (BOB, "user", "s1", []), (BOB, "session", "s1", []), (BOB, "tenant", "", ["tenant"]), (EVE, "tenant", "", []),
    ]  # fmt: skip
    for who, scope, session_id, expected in searches:
        near = await memory.nearest(who, scope, (1.0, 0.0, 0.0), BY, session_id=session_id)
        words = await memory.search(who, scope, "door", session_id=session_id)
        assert [one.key for one in near] == [one.key for one in words] == expected


async def test_the_newest_version_of_a_memory_is_found_by_its_vector(backend: Backend) -> None:
    memory = backend.stores.memory
    await memory.write(a_memory("door", value="red", embedding=(1.0, 0.0, 0.0)))
    await memory.write(a_memory("window", value="small", embedding=(0.6, 0.8, 0.0)))

    async def nearest() -> tuple[str, object]:
        (found,) = await memory.nearest(ANN, "session", (1.0, 0.0, 0.0), BY, 1, session_id="s1")
        return found.key, found.value

    assert await nearest() == ("door", "red")
    await memory.write(a_memory("door", value="green", embedding=(1.0, 0.0, 0.0)))
    assert await nearest() == ("door", "green")
    await memory.write(a_memory("door", value="gone", embedding=(0.0, 0.0, 1.0)))
    assert await nearest() == ("window", "small")


@pytest.mark.req("AS-12")
async def test_vectors_of_another_embedder_are_passed_over(backend: Backend) -> None:
    memory = backend.stores.memory
    await memory.write(a_memory("old", embedding=(1.0, 0.0, 0.0), embedder="another"))
    await memory.write(a_memory("new", embedding=(0.0, 1.0, 0.0)))
    near = await memory.nearest(ANN, "session", (1.0, 0.0, 0.0), BY, session_id="s1")
    assert [one.key for one in near] == ["new"]


@pytest.mark.req("AS-30")
async def test_a_memory_ends_at_its_time_by_the_clock_of_the_kit(backend: Backend) -> None:
    memory, clock = backend.stores.memory, backend.clock
    await memory.write(
        a_memory("short", ttl_at=clock.now + 10, text="door", embedding=(1.0, 0.0, 0.0))
    )
    await memory.write(a_memory("long", text="door", embedding=(0.0, 1.0, 0.0)))

    async def keys() -> list[list[str]]:
        near = await memory.nearest(ANN, "session", (1.0, 0.0, 0.0), BY, 1, session_id="s1")
        words = await memory.search(ANN, "session", "door", session_id="s1")
        return [[one.key for one in near], [one.key for one in words]]

    assert await keys() == [["short"], ["short", "long"]]
    clock.now += 10
    assert await keys() == [["long"], ["long"]] and await memory.read(ANN, "short") is None
    backend.sweep(clock.now, 0.0)
    clock.now -= 10
    assert await keys() == [["long"], ["long"]]  # a clock that goes back brings nothing back


@pytest.fixture(scope="module", params=DATABASES)
def red_door(request: pytest.FixtureRequest) -> Iterator[MemoryStore]:
    """Memories of one database among which one is of a red door."""
    with closing(open_store(new_place(request.param))) as store:
        memory = open_documents(store, dimension=3).memory
        run_virtual(memory.write(a_memory("k", text="a red door")))
        yield memory


@settings(max_examples=15, deadline=None)
@given(
    st.text(st.characters() | st.sampled_from('"*()^:\0\ud800'), max_size=40),
    st.sampled_from([0, 5_000]),
)
@example('door" OR "', 0)
@example("\ud800 \0 NEAR(", 5_000)
def test_any_text_can_be_searched_for(red_door: MemoryStore, text: str, more: int) -> None:
    words = " ".join(["door", text, *map(str, range(more))])
    matches = run_virtual(red_door.search(ANN, "session", words, session_id="s1"))
    assert [one.key for one in matches] == ["k"]


async def test_a_key_is_held_by_one_task_until_it_gives_it_back_or_its_time_is_over(
    backend: Backend,
) -> None:
    memory, clock = backend.stores.memory, backend.clock

    async def lock(task: str | None, value: str, seconds: float | None = 60) -> None:
        end = None if seconds is None else clock.now + seconds
        await memory.write(a_memory("k", locked_by=task, lock_expires=end, value=value))

    await lock("t1", "first")
    for other in ("t2", None):
        with pytest.raises(MemoryLockError, match="t1"):
            await lock(other, "lost", 60 if other else None)
    held = await memory.read(ANN, "k")
    assert held is not None and held.value == "first"
    await lock("t1", "again")  # its own task may
    assert not await memory.unlock(ANN, "k", "t2") and not await memory.unlock(BOB, "k", "t1")
    assert await memory.unlock(ANN, "k", "t1")
    await lock("t2", "second")
    clock.now += 60
    await lock("t3", "third")
    assert not await memory.unlock(ANN, "k", "t2")  # whose lock expired gives back nobody else's
    clock.now -= 3600
    with pytest.raises(MemoryLockError):  # a clock that goes back frees no lock
        await lock("t4", "lost")
    await lock("t3", "without an end", None)
    clock.now += 1e9
    with pytest.raises(MemoryLockError):  # it is held until it is given back
        await lock("t4", "lost")


async def test_a_users_key_cannot_be_taken_by_another(backend: Backend) -> None:
    await backend.stores.memory.write(a_memory("k", scope="user"))
    with pytest.raises(StorageSchemaError, match="another scope or user"):
        await backend.stores.memory.write(a_memory("k", BOB, scope="user", value="mine"))
    await backend.stores.memory.write(
        a_memory("k", EVE, scope="user", value="hers")
    )  # keys are unique within a tenant
    values = [(await backend.stores.memory.read(who, "k")) for who in (ANN, EVE)]
    assert [one and one.value for one in values] == [["k"], "hers"]


async def test_a_tenant_has_a_soul_and_a_user_has_one(backend: Backend) -> None:
    souls = backend.stores.souls
    assert await souls.of(ANN) == (None, None)
    await souls.put(a_soul(user=False, name="Acme"))
    await souls.put(a_soul(tone="dry"))
    await souls.put(a_soul(tone="warm"))
    tenant, user = await souls.of(ANN)
    assert tenant and user and (tenant.persona.name, user.persona.tone) == ("Acme", "warm")
    assert await souls.of(ANN.replace(user_id="")) == (tenant, None)
    assert await souls.of(BOB) == (tenant, None) and await souls.of(EVE) == (None, None)
    assert await souls.remove(ANN.tenant_id) and not await souls.remove(ANN.tenant_id)
    assert await souls.of(ANN) == (None, user)


async def test_a_plan_is_replaced_only_by_who_read_its_newest_version(backend: Backend) -> None:
    plans, plan = backend.stores.plans, a_plan()
    await plans.create(plan)
    with pytest.raises(VersionConflict):
        await plans.create(plan.replace(status="failed"))
    newer = await plans.replace(plan.replace(status="executing"))
    assert newer == plan.replace(status="executing", version=2) == await plans.read(ANN, "p1")
    for stale in (
        plan,
        newer.replace(user_id="bob"),
        newer.replace(tenant_id="other"),
        a_plan("none"),
    ):
        with pytest.raises(VersionConflict):
            await plans.replace(stale.replace(status="failed"))
    assert await plans.read(BOB, "p1") is None and await plans.read(EVE, "p1") is None
    assert await plans.read(ANN, "p1") == newer
    assert await plans.unfinished() == [newer]
    await plans.replace(newer.replace(status="complete"))
    assert await plans.unfinished() == []


@pytest.mark.req("AS-16")
async def test_events_are_added_in_order_never_changed_and_kept_once(backend: Backend) -> None:
    events = backend.stores.events
    first = await events.append(an_event("e1", payload={"bytes": 3}))
    assert await events.append(an_event("e1", payload={"bytes": 4})) == first  # reported again
    late = await events.append(
        an_event("e2", ts=50.0, skill_id="outlets", large_response_triggered=True, plan_id="p")
    )
    await events.append(an_event("e1", EVE))
    assert (
        await events.query(EventFilter(tenant_id="acme")) == [first, late] and first.seq < late.seq
    )
    big = EventFilter(
        tenant_id="acme", event_type="skill.called", large_response_triggered=True, since=40.0
    )
    assert (
        await events.query(big) == [late]
        and await events.query(big.replace(tenant_id="other")) == []
    )
    backend.sweep(10.0, 0.0)
    assert await events.query(EventFilter(tenant_id="acme")) == [late]


async def test_events_are_listed_by_user_and_time_the_newest_first(backend: Backend) -> None:
    events = backend.stores.events
    for number, who in enumerate((ANN, BOB, ANN, EVE, ANN)):
        await events.append(an_event(f"e{number}", who, ts=float(number), user_id=who.user_id))

    async def ids(by: EventFilter, limit: int = 9, *, newest_first: bool = False) -> list[str]:
        listed = await events.query(by, limit, newest_first=newest_first)
        return [event.event_id for event in listed]

    anns = EventFilter(tenant_id="acme", user_id="ann")
    assert await ids(anns) == ["e0", "e2", "e4"]
    assert await ids(anns, 2, newest_first=True) == ["e4", "e2"]
    assert await ids(anns.replace(since=1.0, until=4.0)) == ["e2"]
    assert await ids(EventFilter(tenant_id=OPERATOR), newest_first=True) == [
        *("e4", "e3", "e2", "e1", "e0")
    ]


@pytest.mark.req("AS-26")
async def test_plans_are_listed_by_when_they_were_made_and_by_when_they_ended(
    backend: Backend,
) -> None:
    plans = backend.stores.plans
    for number, who in enumerate((ANN, BOB, ANN, EVE)):
        plan = a_plan(f"p{number}", who).replace(
            created_at=10.0 * number, task_type=f"kind {number % 2}"
        )
        # The one that began first ends last.
        ended = plan.replace(status="complete", completed_at=100.0 - number)
        await plans.create(ended if number else plan)

    async def ids(**fields: Any) -> list[str]:
        listed = await plans.query(PlanFilter.model_validate({"tenant_id": "acme", **fields}))
        return [plan.plan_id for plan in listed]

    assert await ids() == ["p2", "p1", "p0"] and await ids(user_id="ann") == ["p2", "p0"]
    assert await ids(since=10.0, until=20.0) == ["p1"] and await ids(task_type="kind 1") == ["p1"]
    assert await ids(ended_since=98.0) == ["p2", "p1"], "one that has not ended is not among them"
    assert await ids(ended_since=98.0, ended_until=99.0) == ["p2"]
    assert await ids(tenant_id=OPERATOR) == ["p3", "p2", "p1", "p0"]
    assert [plan.plan_id for plan in await plans.query(PlanFilter(tenant_id="acme"), 1)] == ["p2"]
    assert [plan.plan_id for plan in await plans.of(ANN)] == ["p2", "p0"], "its own alone"


@pytest.mark.req("AS-26")
async def test_plans_and_events_are_counted_by_what_they_have_in_common(backend: Backend) -> None:
    stores = backend.stores
    for number in range(6):
        who = EVE if number == 5 else ANN
        plan = a_plan(f"p{number}", who)
        if number >= 3:
            failed = plan.replace(status="failed", failure_kind="exhausted", replan_count=3)
            plan = failed.replace(task_type="ranking", completed_at=float(number))
        await stores.plans.create(plan)
        event = an_event(f"e{number}", who, ts=float(number), skill_id=f"s{number % 2}")
        many = {"large_response_triggered": number > 3, "duration_ms": number % 2}
        await stores.events.append(event.replace(**many))
    of_plans = PlanFilter(tenant_id="acme")
    kinds = await stores.plans.count(of_plans, ("status", "failure_kind", "replan_count"))
    assert kinds == {("pending", None, 0): 3, ("failed", "exhausted", 3): 2}
    ended = of_plans.replace(ended_since=4.0)
    assert await stores.plans.count(ended, ("task_type", "completed_at")) == {("ranking", 4.0): 1}
    everybodys = PlanFilter(tenant_id=OPERATOR)
    assert await stores.plans.count(everybodys, ("tenant_id",)) == {("acme",): 5, ("other",): 1}
    of_events = EventFilter(tenant_id="acme", until=5.0)
    by_skill = await stores.events.count(of_events, ("skill_id", "large_response_triggered"))
    assert by_skill == {("s0", False): 2, ("s1", False): 2, ("s0", True): 1}
    times = await stores.events.count(of_events, ("agent", "duration_ms"))
    assert times == {(None, 0): 3, (None, 1): 2}


async def test_another_error_of_the_backend_is_a_store_error(store: TurnStore) -> None:
    documents = open_documents(store)
    await documents.events.append(an_event("e1"))
    with pytest.raises(StoreError, match="never changed"), store.commit() as db:
        db.execute("UPDATE agent_events SET ts = 0")
    store.close()
    with pytest.raises(StoreError, match="open it again"):
        await documents.memory.write(a_memory("k"))
