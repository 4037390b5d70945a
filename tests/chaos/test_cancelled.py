"""A turn cancelled at any moment leaves no task, no stream, no file and no span open."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import tool

from kit.core.bodies.call import AgentEnded
from kit.core.card import AgentCard
from kit.core.context import OPERATOR
from kit.models.scripted import Line, Script, ScriptedModel
from kit.runtime.clock import run_virtual
from kit.runtime.turn import Reply, run_turn
from kit.stores.sqlite import SqliteStore
from tests.kits import ALICE, SmallKit, asks, nothing_runs, small_kit

TURNS = 80
streams: set[int] = set()
"""Model streams now open."""


class Watched(ScriptedModel):
    """A scripted model that notes when its stream opens and closes."""

    def __init__(self, *script: Script, **fields: Any):
        super().__init__(*script, **fields)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        key = len(streams) + random.getrandbits(60)
        streams.add(key)
        try:
            async for chunk in super()._astream(messages, stop, run_manager, **kwargs):
                yield chunk
        finally:
            streams.discard(key)


@tool
async def read_file() -> str:
    """Reads a file, slowly."""
    with Path(__file__).open() as file:
        await asyncio.sleep(0.7)
        return file.read(10)


def open_files(folder: Path) -> Counter[str]:
    """What this process holds open, by name: sockets, pipes and files, those of other tests'
    folders left out.

    Earlier tests ran in this process too: what they left is closed, or opened, by threads and
    garbage collection of their own.
    """
    names: Counter[str] = Counter()
    for link in Path("/proc/self/fd").iterdir():
        with suppress(
            FileNotFoundError
        ):  # it was the folder itself, or another thread has closed it
            names[os.readlink(link)] += 1
    others = f"{folder.parent}/"
    return Counter(
        {
            name: n
            for name, n in names.items()
            if name.startswith(f"{folder}/") or not name.startswith(others)
        }
    )


def slow_kit(rng: random.Random, store: SqliteStore, tools: dict[str, Any]) -> SmallKit:
    """Agents that stream, call a tool or fail, each at its own pace; serves any number of turns."""
    ids = [f"a{i}" for i in range(rng.randint(1, 4))]
    cards = [
        AgentCard(id=i, description=f"Answers {i}.", model="offline", tools=tuple(tools))
        for i in ids
    ]
    words = [f"word{i} " for i in range(6)]

    def worker() -> Watched:
        says = Line(
            "".join(words),
            pieces=words,
            pace=rng.random() / 3,
            error=rng.choice([None, None, OSError("x1")]),
        )
        calls = Line(calls=[(name, {}) for name in tools], delay=rng.random())
        uses = rng.random() < 0.7
        return Watched(
            lambda seen: calls if uses and not isinstance(seen[-1], ToolMessage) else says
        )

    asking = Line("One moment.", calls=asks(*ids).calls, delay=0.3)
    saying = Line("".join(words), pieces=words, pace=0.2)
    lead = Watched(lambda seen: saying if isinstance(seen[-1], ToolMessage) else asking)
    kit = small_kit(lead, {i: worker() for i in ids}, tools, cards=cards)
    kit.store.close()
    kit.store = store
    return kit


async def cancelled_at(moment: Awaitable[object], kit: SmallKit, name: str) -> Reply:
    turn = run_turn("things", ALICE.model_copy(update={"id": name}), kit)
    await moment
    turn.cancel()
    reply = await turn
    assert nothing_runs()
    assert streams == set()
    assert reply.events[-1].kind == "completed" and all(
        span.status != "running" for span in reply.trace.spans
    )
    return reply


def kinds_of_outcomes(reply: Reply) -> set[str]:
    """How the agents of a turn ended."""
    bodies = [event.body for event in reply.events]
    return {body.outcome.kind for body in bodies if isinstance(body, AgentEnded)}


@pytest.mark.skipif(
    not Path("/proc/self/fd").exists(),
    reason="open files are counted in /proc, which this system lacks",
)
def test_turns_cancelled_at_random_points_leave_nothing_open(tmp_path: Path):
    async def scene() -> set[str]:
        rng = random.Random(0)
        store = SqliteStore(str(tmp_path / "kit.db"))
        await asyncio.to_thread(
            store.turn, "none", OPERATOR
        )  # opens the connection of other threads, as LiveLogs does
        ended: set[str] = set()
        before: Counter[str] = Counter()
        kit = slow_kit(rng, store, {"read_file": read_file})
        for number in range(TURNS):
            kit = kit if number % 10 else slow_kit(rng, store, {"read_file": read_file})
            reply = await cancelled_at(asyncio.sleep(rng.random() * 4), kit, f"s{number}")
            ended.add(reply.status)
            # a turn that came to its end before it was cancelled has failed where no agent answered
            if reply.status == "failed":
                assert kinds_of_outcomes(reply) == {"failure"}
            if reply.status == "ok":
                assert "answer" in kinds_of_outcomes(reply)
            before = before or open_files(tmp_path)
            assert not open_files(tmp_path) - before
        store.close()
        return ended

    assert run_virtual(scene()) - {"failed"} == {"ok", "cancelled"}
