"""What becomes of the documents of plans when OpenSearch fails: a typed error with what helps, and no restart after it."""

import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from kit.core.errors import StoreBusy, StoreError
from tests.effort import allowance
from tests.opensearch_server import server
from tests.stores.test_documents import ANN, BY, a_memory, a_plan, an_event
from tests.stores.test_opensearch import Opened

pytestmark = [pytest.mark.opensearch, pytest.mark.realtime, pytest.mark.req("AS-11")]


@pytest.fixture
def opened() -> Iterator[Opened]:
    with closing(Opened(timeout=2)) as stores:
        yield stores


async def fault(opened: Opened, kind: type[StoreError], words: str) -> float:
    """Reads, searches and writes; each ends with that error. Returns the seconds that the slowest took."""
    stores = opened.stores
    slowest = 0.0
    for call in (
        lambda: stores.plans.read(ANN, "p1"),
        lambda: stores.plans.of(ANN),
        lambda: stores.plans.create(a_plan("p2")),
    ):
        began = time.monotonic()
        with pytest.raises(kind, match=words):
            await call()
        slowest = max(slowest, time.monotonic() - began)
    return slowest


async def works(opened: Opened) -> bool:
    """Whether the plan that was written before is there, and can be replaced."""
    plan = await opened.stores.plans.read(ANN, "p1")
    assert plan is not None
    return (await opened.stores.plans.replace(plan)).version == plan.version + 1


async def test_a_server_that_was_killed_keeps_what_it_acknowledged_and_is_used_again(
    opened: Opened,
) -> None:
    stores = opened.stores
    await stores.plans.create(a_plan("p1"))
    event = await stores.events.append(an_event("e1"))
    # k-NN writes a document with a vector anew for the recovery, and a large number with an exponent.
    memory = a_memory(
        "k",
        embedding=(1.0, 0.0, 0.0),
        embedder=BY,
        created_at=1796045902.7900608,
        ttl_at=1796049502.5,
    )
    await stores.memory.write(memory)
    server().kill()
    slowest = await fault(
        opened, StoreError, "cannot be reached: start it, or correct KIT_DOCUMENTS"
    )
    assert slowest < 10
    server().start()
    assert await works(opened)
    assert await stores.memory.read(ANN, "k") == memory
    assert await stores.events.append(an_event("e1", payload="again")) == event


async def test_a_server_that_does_not_answer_ends_in_the_time_that_was_set(opened: Opened) -> None:
    await opened.stores.plans.create(a_plan("p1"))
    with server().frozen():
        slowest = await fault(opened, StoreError, "did not answer within 2 s")
    assert slowest < 10
    assert await works(opened)


async def test_an_index_that_takes_no_writes_says_so_and_is_still_read(opened: Opened) -> None:
    plans = opened.stores.plans
    await plans.create(a_plan("p1"))
    index = opened.place.index("agent_plans", "acme")
    opened.client.indices.put_settings(index=index, body={"index.blocks.write": True})
    with pytest.raises(StoreError, match=r"takes no writes.*make room on its disk"):
        await plans.create(a_plan("p2"))
    assert [plan.plan_id for plan in await plans.of(ANN)] == ["p1"]
    opened.client.indices.put_settings(index=index, body={"index.blocks.write": None})
    assert await works(opened)


async def test_a_kit_opens_though_what_has_expired_cannot_be_deleted(opened: Opened) -> None:
    """So it is where its disk is full, and turns that make no plan still go."""
    await opened.stores.memory.write(a_memory("old", ttl_at=1.0))
    index = opened.place.index("agent_memory", "acme")
    block = {"index.blocks.read_only_allow_delete": True}
    opened.client.indices.put_settings(index=index, body=block)
    began = time.monotonic()
    opened.backend.open(opened.stores.sessions)
    assert time.monotonic() - began < allowance(20)


async def test_an_index_that_is_red_is_an_error_and_never_a_shorter_answer(opened: Opened) -> None:
    index = opened.place.index("agent_plans", "acme")
    nowhere = {"index.routing.allocation.require._name": "nobody"}
    opened.client.indices.delete(index=index)
    opened.client.indices.create(
        index=index, body={"settings": nowhere}, params={"wait_for_active_shards": "0"}
    )
    await fault(opened, StoreError, "an index that is red")
    somewhere = dict.fromkeys(nowhere)
    opened.client.indices.put_settings(index=index, body=somewhere)
    opened.client.cluster.health(index=index, params={"wait_for_status": "green"})
    await opened.stores.plans.create(a_plan("p1"))
    assert await works(opened)


@contextmanager
def too_busy(opened: Opened) -> Generator[None]:
    """Has the server refuse every request that has a body, as one that is short of memory does."""
    name = "network.breaker.inflight_requests.limit"

    def limit(value: str | None) -> None:
        opened.client.cluster.put_settings(body={"transient": {name: value}})

    limit("1b")
    try:
        yield
    finally:
        limit(None)


async def test_a_server_with_too_much_to_do_is_busy_and_asked_three_times(opened: Opened) -> None:
    await opened.stores.plans.create(a_plan("p1"))
    with too_busy(opened):
        began = time.monotonic()
        with pytest.raises(StoreBusy, match="too much to do"):
            await opened.stores.plans.create(a_plan("p2"))
        assert 0.5 <= time.monotonic() - began < allowance(10)
    assert await opened.stores.plans.read(ANN, "p2") is None
    assert await works(opened)


async def test_an_index_of_somebody_else_is_refused_when_documents_are_opened() -> None:
    with closing(Opened()) as opened:
        index = opened.place.index("agent_souls", "acme")
        opened.client.indices.delete(index=index)
        loose: dict[str, Any] = {"mappings": {"dynamic": True}}
        opened.client.indices.create(index=index, body=loose)
        with pytest.raises(StoreError, match="takes any field"):
            opened.backend.open(opened.stores.sessions)
        index = opened.place.index("agent_memory", "acme")
        short = opened.place.replace(dimension=2)
        opened.client.indices.delete(index=opened.place.index("agent_souls", "acme"))
        opened.backend.cluster.address = short
        with pytest.raises(StoreError, match="have 3 numbers, those of the embedder 2"):
            opened.backend.open(opened.stores.sessions)
