"""Many at once: nothing crosses, nothing is lost."""

import asyncio
import json
from typing import Any

import pytest

from kit.models.scripted import Line
from kit.service.limits import Limits
from tests.service.servers import chat, frames

pytestmark = pytest.mark.realtime
TENANTS = 20
STREAMS = 200
MANY = Limits(turns_at_once=STREAMS, turns_a_minute=10 * STREAMS)


def repeats(messages: list[Any]) -> Line:
    """A sub-agent that says everything that it is told."""
    return Line(" / ".join(str(message.content) for message in messages[1:]), delay=0.05)


@pytest.mark.req("AS-19")
async def test_of_twenty_tenants_at_once_in_sessions_of_one_id_none_reads_of_another() -> None:
    async with chat(words=repeats, limits=MANY) as api:

        async def talk(number: int) -> list[str]:
            who = {"X-Tenant-Id": f"tenant-{number:02}", "X-User-Id": "alice"}
            texts: list[str] = []
            for turn in range(3):
                message = f"word-of-{number:02} number {turn}"
                async with api.stream(message, who, session="same") as response:
                    texts += [json.dumps(frame.data) async for frame in frames(response)]
            return texts

        told = await asyncio.gather(*(talk(number) for number in range(TENANTS)))
    for number, texts in enumerate(told):
        everything = "\n".join(texts)
        assert f"word-of-{number:02} number 2" in everything
        for other in range(TENANTS):
            is_own = other == number
            assert (f"word-of-{other:02}" in everything) is is_own
            assert (f"tenant-{other:02}" in everything) is is_own


@pytest.mark.req("AS-15")
async def test_two_hundred_streams_at_once_arrive_whole_and_in_order() -> None:
    async with chat(seconds=1.0, limits=MANY) as api:

        async def read(number: int) -> None:
            async with api.stream(session=f"s{number}") as response:
                assert response.status_code == 200
                told = [frame async for frame in frames(response)]
            *events, end = told
            numbers = [frame.id for frame in events]
            assert numbers == list(range(len(events)))
            assert (end.kind, end.data["response"]) == ("result", "It is tea.")

        await asyncio.gather(*(read(number) for number in range(STREAMS)))
        assert not len(api.kit.turns)
