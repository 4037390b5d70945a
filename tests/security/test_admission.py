"""Turns beyond what a process can answer at once wait for a place instead of losing parts to their deadlines."""

import asyncio
from dataclasses import replace

import pytest
from langchain_core.messages import BaseMessage

from kit.compose.deck import load_deck
from kit.core.context import OPERATOR
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.turn import run_turn
from kit.settings import HOME, Settings
from kit.wire import open_kit
from tests.kits import ALICE, SmallKit, small_kit

BUSY = {"now": 0, "most": 0}


def crowded(limit: int | None) -> SmallKit:
    """A kit whose model needs a second for each turn that is answered beside it, and has five."""

    def lead(_: list[BaseMessage]) -> Line:
        BUSY["now"] += 1
        BUSY["most"] = max(BUSY["most"], BUSY["now"])
        return Line("Hello.", delay=BUSY["now"] * 1.0)

    return small_kit(
        ScriptedModel(lead), {"shop": ScriptedModel("x")}, turns_at_once=limit, turn_budget_ms=5000
    )


async def play(kit: SmallKit, count: int = 30) -> list[str]:
    BUSY.update(now=0, most=0)

    async def one(number: int) -> str:
        reply = await run_turn("hi", ALICE.model_copy(update={"id": f"s{number}"}), kit)
        BUSY["now"] -= 1
        return reply.status

    return await asyncio.gather(*(one(number) for number in range(count)))


@pytest.mark.req("S-10")
async def test_a_crowd_waits_for_a_place_and_loses_nothing():
    assert set(await play(crowded(3))) == {"ok"} and BUSY["most"] <= 4
    assert "deadline" in await play(crowded(None)) and BUSY["most"] == 30


@pytest.mark.req("S-10")
async def test_the_limit_is_that_of_the_kit_whatever_pattern_model_or_cohort_asks():
    deck = load_deck(HOME / "cards" / "consumer")
    deck = replace(deck, settings=deck.settings.model_copy(update={"turns_at_once": 2}))
    lead = ScriptedModel(lambda _: Line("Hello.", delay=1.0))
    async with open_kit(
        Settings(store=":memory:"),
        deck=deck,
        models={"*": ScriptedModel("x"), "orchestrator": lead},
    ) as kit:
        flags, began = dict.fromkeys(kit.deck.flags, True), asyncio.get_running_loop().time()
        ways = [
            (pattern, cohort)
            for pattern in ("mediated", "monolith", "supervisor")
            for cohort in (None, flags)
        ]
        asked = [
            kit.ask("hello", kit.session(f"{n}", flags=cohort), pattern)
            for n, (pattern, cohort) in enumerate(ways)
        ]
        replies = await asyncio.gather(*asked)
        assert {reply.text for reply in replies} == {"Hello."} and len(lead.seen) == 6
        assert asyncio.get_running_loop().time() - began == 3.0, (
            "six turns of a second each, two at once"
        )


@pytest.mark.req("S-10")
async def test_a_turn_that_waits_is_stored_and_can_be_stopped():
    kit = crowded(1)
    BUSY.update(now=0, most=0)
    first, second = (
        run_turn("hi", ALICE, kit),
        run_turn("wait", ALICE.model_copy(update={"id": "s2"}), kit),
    )
    await asyncio.sleep(0.5)
    waiting = kit.store.turn(second.id, OPERATOR)
    assert waiting is not None and waiting.status == "running" and not second.done
    second.cancel()
    assert (
        (await second).status == "cancelled" and (await first).status == "ok" and BUSY["most"] == 1
    )
