"""An agent behind an API that streams is read while the API still speaks, where sub-agents speak to
the user themselves."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from kit.core.bodies.call import AgentEnded
from kit.core.bodies.speech import Text
from kit.core.event import Event
from kit.core.outcome import Failure
from kit.models.scripted import ScriptedModel
from kit.patterns.agents_as_tools import MEDIATED
from kit.patterns.direct_streaming import DIRECT
from kit.runtime.pattern import Pattern
from kit.runtime.turn import Reply, run_turn
from kit.worlds.consumer.support import Conversations, HttpSupport, support_api
from kit.worlds.consumer.support_service import support_app
from kit.worlds.service.serve import serving
from tests.kits import ALICE, asks, small_kit, stitched
from tests.services.test_upstream import world

SENTENCES = ("Open the receipt.", " Tap Fix it.", " Send it again.")


async def ask(
    service: object, pattern: Pattern = DIRECT, question: str = "my receipt did not scan"
) -> Reply:
    kit = small_kit([asks("support", query=question), stitched], {"support": ScriptedModel()})
    kit.team = kit.team.with_services({"support": service})
    return await run_turn(question, ALICE, kit, pattern)


def answers(reply: Reply) -> list[tuple[float, str]]:
    """When each piece of the answer could be read."""
    return [
        (event.at, event.body.text)
        for event in reply.events
        if isinstance(event.body, Text) and event.body.channel == "answer"
    ]


def ended(events: Any) -> Event:
    return next(event for event in events if isinstance(event.body, AgentEnded))


async def slowly(question: str) -> AsyncGenerator[str, None]:
    for sentence in SENTENCES:
        await asyncio.sleep(1.0)
        yield sentence


@pytest.mark.req("SAT-27")
async def test_each_piece_is_read_when_the_api_sends_it():
    reply = await ask(slowly)
    assert [at for at, _ in answers(reply)] == pytest.approx([1.0, 2.0, 3.0], abs=0.05)
    assert reply.text == "".join(SENTENCES) and ended(reply.events).at == pytest.approx(3.0)
    mediated = await ask(slowly, MEDIATED)
    assert mediated.text == "".join(SENTENCES) and min(at for at, _ in answers(mediated)) >= 3.0


@pytest.mark.req("SAT-27")
async def test_words_of_an_api_that_breaks_off_do_not_stand():
    async def breaks(question: str) -> AsyncGenerator[str, None]:
        yield "Open the rec"
        raise OSError("reset")

    reply = await ask(breaks)
    assert isinstance(reply.outcomes[0], Failure)
    assert reply.text == "I wasn't able to get an answer about support right now."


@pytest.mark.realtime
@pytest.mark.req("SAT-27")
async def test_over_a_socket_the_first_words_are_read_before_the_service_has_ended():
    async with (
        serving(support_app(world(), pace=0.3)) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        reply = await ask(support_api(HttpSupport(client), Conversations()))
    read, end = answers(reply), ended(reply.events)
    assert len(read) > 2 and read[0][0] < end.at - 0.05
    assert reply.text.startswith(read[0][1].strip()) and reply.status == "ok"
    assert [event.body.status for event in reply.events if event.body.kind == "status"] == [
        "asking_support"
    ]
