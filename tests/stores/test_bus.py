"""What a bus promises: every group gets every entry, each entry is one reader's until it is
acknowledged, nothing is lost."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from kit.runtime.clock import run_virtual
from kit.stores.bus import LONGEST, Bus, LocalBus


async def test_every_group_gets_every_entry_also_those_from_before_it_came() -> None:
    bus: Bus = LocalBus()
    for number in range(3):
        await bus.publish("steps", {"number": number})
    for group in ("managers", "monitors"):
        entries = await bus.read("steps", group, "a")
        assert [(entry.id, entry.body["number"]) for entry in entries] == [(1, 0), (2, 1), (3, 2)]
    assert (
        await bus.read("steps", "managers", "b") == []
        and await bus.read("others", "managers", "a") == []
    )


async def test_a_reader_that_waits_is_woken_by_the_entry_and_not_later() -> None:
    bus, loop = LocalBus(), asyncio.get_running_loop()
    waiting = asyncio.create_task(bus.read("steps", "managers", "a", wait=5.0))
    await asyncio.sleep(2)
    await bus.publish("steps", {"done": True})
    assert [entry.id for entry in await waiting] == [1] and loop.time() == 2
    assert await bus.read("steps", "managers", "a", wait=5.0) == [] and loop.time() == 7


async def test_what_a_dead_reader_held_goes_to_another_and_what_was_acknowledged_does_not() -> None:
    bus = LocalBus()
    for number in range(3):
        await bus.publish("steps", {"number": number})
    await bus.read("steps", "workers", "dead", limit=2)
    await bus.acknowledge("steps", "workers", 1)
    await asyncio.sleep(29)
    assert await bus.claim("steps", "workers", "alive", idle=30) == []
    await asyncio.sleep(1)
    assert [entry.id for entry in await bus.claim("steps", "workers", "alive", idle=30)] == [2]
    assert await bus.claim("steps", "workers", "third", idle=30) == []  # the claim began a new hold
    assert [await bus.acknowledge("steps", "workers", 2) for _ in range(2)] == [1, 0]


async def test_a_stream_is_bounded() -> None:
    bus = LocalBus()
    for number in range(LONGEST + 5):
        await bus.publish("steps", {"number": number})
    assert [entry.id for entry in await bus.read("steps", "late", "a", limit=2)] == [6, 7]


@given(st.lists(st.sampled_from(["publish", "a", "b", "die"]), max_size=40))
def test_nothing_is_lost_and_nothing_acknowledged_comes_again(steps: list[str]) -> None:
    """Readers come, work and die in any order: at the end each entry was done, and none after it was acknowledged."""

    async def play() -> None:
        bus, count, done = LocalBus(), 0, list[int]()
        for step in [*steps, "a"]:
            await asyncio.sleep(1)
            if step == "publish":
                count = await bus.publish("s", {})
            elif step == "die":
                await bus.read("s", "g", f"dead {step}", limit=1)
            else:
                for entry in [
                    *await bus.claim("s", "g", step, idle=0),
                    *await bus.read("s", "g", step, limit=99),
                ]:
                    done.append(entry.id)
                    await bus.acknowledge("s", "g", entry.id)
        assert sorted(done) == list(range(1, count + 1))

    run_virtual(play())
