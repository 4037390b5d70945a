"""A model that takes no notice of being stopped: its turn ends on time without it, with what the others answered."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk

from kit.core.bodies.speech import Text
from kit.core.context import OPERATOR
from kit.models.asynchronous import AsyncChatModel
from kit.models.scripted import ScriptedModel
from kit.runtime.budget import GRACE
from kit.runtime.handle import Reply
from kit.runtime.turn import run_turn
from tests.kits import ALICE, SmallKit, answering, asks, nothing_runs, small_kit, stitched

HANGS = 8.0
"""Seconds a model goes on, whoever stops it."""


class Stubborn(AsyncChatModel):
    """Says a word a second and swallows every cancellation."""

    @property
    def _llm_type(self) -> str:
        return "stubborn"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self.bind(**options)

    async def _astream(
        self, messages: Any, *args: Any, **options: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        loop = asyncio.get_running_loop()
        end = loop.time() + HANGS
        while loop.time() < end:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(1.0)
            yield ChatGenerationChunk(message=AIMessageChunk(content="word "))


def kit_with(**models: Any) -> SmallKit:
    lead = models.pop("orchestrator", None) or ScriptedModel(
        asks("shop", "rewards"), stitched, stitched
    )
    return small_kit(
        lead,
        {"shop": answering("Beans."), "rewards": answering("120 points."), **models},
        turn_budget_ms=2000,
    )


async def timed(kit: SmallKit, stop: float | None = None) -> tuple[Reply, float]:
    loop = asyncio.get_running_loop()
    began, turn = loop.time(), run_turn("beans and points", ALICE, kit)
    if stop is not None:
        loop.call_later(stop, turn.cancel)
    reply = await turn
    took = loop.time() - began
    assert turn.done and reply.saved
    events = list(reply.events)
    await asyncio.sleep(2 * HANGS)
    assert list(turn.events) == events == kit.store.events(turn.id, OPERATOR), (
        "what was left behind has no voice"
    )
    assert nothing_runs()
    return reply, took


@pytest.mark.req("S-12")
async def test_a_sub_agent_that_cannot_be_stopped_costs_its_own_part(
    caplog: pytest.LogCaptureFixture,
):
    lead = ScriptedModel(asks("shop", "rewards"), stitched, stitched)
    with caplog.at_level(logging.ERROR):
        reply, took = await timed(kit_with(orchestrator=lead, shop=Stubborn()))
    assert len(lead.seen) == 1, "what is left behind calls no further model"
    assert took <= 2.0 + GRACE + 0.01 and reply.status == "deadline"
    assert "120 points." in reply.text and "shop" in reply.text and "word" not in reply.text
    assert {o.agent: o.kind for o in reply.outcomes} == {"shop": "failure", "rewards": "answer"}
    assert "left behind" in caplog.text


@pytest.mark.req("S-12")
async def test_an_orchestrator_that_cannot_be_stopped_is_left_behind(
    caplog: pytest.LogCaptureFixture,
):
    reply, took = await timed(kit_with(orchestrator=Stubborn()))
    assert took <= 2.0 + GRACE + 0.01 and reply.status == "deadline"
    assert reply.text and "word" not in reply.text and "left behind" in caplog.text
    assert [event for event in reply.events if isinstance(event.body, Text)][-1].at <= took


@pytest.mark.req("S-12")
async def test_a_stop_is_heard_although_a_model_takes_no_notice():
    reply, took = await timed(kit_with(shop=Stubborn()), stop=1.0)
    assert (
        took <= 1.0 + GRACE + 0.01 and reply.status == "cancelled" and "120 points." in reply.text
    )


@pytest.mark.req("S-12")
async def test_a_helper_that_cannot_be_stopped_holds_no_turn():
    kit = kit_with()
    kit = small_kit(
        ScriptedModel(lambda _: "Hello."),
        {"shop": answering("x"), "helper": Stubborn()},
        compact_after=1,
        compact_keep=1,
    )
    for _ in range(5):
        await run_turn("hi there", ALICE, kit)
    reply, took = await timed(kit)
    assert reply.status == "ok" and took <= 1.0 + GRACE + 0.01
