"""Seven ways to orchestrate one turn over the same cards: what each promises, and that its promises hold."""

import asyncio
from typing import Any

import pytest
from langchain_core.tools import StructuredTool

from kit.core.card import AgentCard
from kit.core.event import Separator, Text, TextReplaced
from kit.core.transcript import transcript
from kit.models.scripted import Line, ScriptedModel
from kit.patterns import PATTERNS
from kit.runtime.turn import Reply, run_turn
from tests.kits import ALICE, SmallKit, asks, failing, small_kit

TWO = "find coffee deals and check my points"


def talking(*pieces: str, delay: float = 0.0, pace: float = 0.0, error: BaseException | None = None) -> ScriptedModel:
    """A sub-agent that says these pieces, `pace` apart."""
    return ScriptedModel(lambda _: Line("".join(pieces), pieces=pieces, delay=delay, pace=pace, error=error))


async def ask(kit: SmallKit, pattern: str, message: str = TWO) -> Reply:
    return await run_turn(message, ALICE, kit, PATTERNS[pattern])


def words(reply: Reply) -> list[tuple[float, str]]:
    """What the page was sent as the answer, and when."""
    return [(round(e.at, 4), e.body.text) for e in reply.events if isinstance(e.body, Text) and e.body.channel == "answer"]


def pieces_of(name: str, count: int) -> list[str]:
    return [f"{name}{number} " for number in range(count)]


# direct


@pytest.mark.req("SAT-7", "SAT-23")
@pytest.mark.parametrize("first", ["shop", "rewards"])
async def test_direct_the_first_to_produce_is_live_and_the_other_follows_whole_in_either_order(first: str) -> None:
    second = "rewards" if first == "shop" else "shop"
    models = {
        first: talking(*pieces_of(first, 4), delay=1.0, pace=0.1),
        second: talking(*pieces_of(second, 4), delay=1.05, pace=0.01),
    }
    kit = small_kit([asks("shop", "rewards")], models)
    reply = await ask(kit, "direct")
    one, other = ("".join(pieces_of(name, 4)).strip() for name in (first, second))
    assert reply.text == f"{one}\n\n{other}" == transcript(reply.events).answer.strip()
    assert reply.events[-1].at < 1.6, "both ran at the same time"
    live = [at for at, text in words(reply) if first in text]
    assert live == pytest.approx([1.0, 1.1, 1.2, 1.3], abs=0.031), "spoken as it comes, within the gathering window"
    assert min(at for at, text in words(reply) if second in text) >= 1.4, "and the other only when it has ended"


@pytest.mark.req("SAT-23")
@pytest.mark.parametrize(("flush_ms", "taken"), [(15, 0.15), (0, 0.0), (100, 1.0)])
async def test_direct_what_waited_is_flushed_in_order_with_a_pause_after_each_piece(flush_ms: int, taken: float) -> None:
    models = {"shop": talking("done ", delay=0.5), "rewards": talking(*pieces_of("r", 10), delay=0.5)}
    settings: dict[str, Any] = {} if flush_ms == 15 else {"flush_ms": flush_ms}
    kit = small_kit([asks("shop", "rewards")], models, **settings)
    reply = await ask(kit, "direct")
    assert reply.text == "done\n\n" + "".join(pieces_of("r", 10)).strip()
    assert reply.events[-1].at == pytest.approx(0.5 + taken, abs=1e-6)


@pytest.mark.req("SAT-7", "SAT-23")
async def test_direct_the_slot_passes_on_the_next_flushes_then_speaks_live() -> None:
    models = {
        "a": talking("a0 ", delay=0.1),
        "b": talking(*pieces_of("b", 3), delay=0.3, pace=1.0),
        "c": talking(*pieces_of("c", 3), delay=0.2, pace=0.2),
    }
    kit = small_kit([asks("a", "b", "c")], models)
    reply = await ask(kit, "direct")
    spoken = {text.strip(): at for at, text in words(reply) if text.strip()}
    assert "".join(text for _, text in words(reply)).split() == ["a0", "c0", "c1", "c2", "b0", "b1", "b2"]
    assert spoken["c0"] == pytest.approx(0.2, abs=0.02) and spoken["c1"] == pytest.approx(0.4, abs=0.04), "live: it was its turn"
    assert 0.8 <= spoken["b0"] <= 0.82, "waited since 0.3, flushed when c had ended"
    assert spoken["b1"] == pytest.approx(1.3, abs=0.04) and spoken["b2"] == pytest.approx(2.3, abs=0.04), "and live after that"


@pytest.mark.req("SAT-7")
async def test_direct_the_separator_is_an_event_of_the_log_and_nothing_a_reader_sees() -> None:
    kit = small_kit([asks("a", "b")], {"a": talking("A one."), "b": talking("B one.", delay=1)})
    reply = await ask(kit, "direct")
    assert [e.body.agent for e in reply.events if isinstance(e.body, Separator)] == ["b"]
    assert "separator" not in reply.text.lower() and transcript(reply.events).answer == reply.text == "A one.\n\nB one."


@pytest.mark.req("SAT-7")
async def test_direct_an_owed_acknowledgement_is_appended_to_what_was_said() -> None:
    kit = small_kit([asks("a", "rewards", "c")], {"a": talking("All is well."), "rewards": failing(OSError("x"), 1)}, cap=2)
    reply = await ask(kit, "direct")
    assert reply.text.startswith("All is well.") and "rewards" in reply.text and "c for now" in reply.text
    assert not any(isinstance(e.body, TextReplaced) for e in reply.events), "appended: nothing that was said is said again"
    assert [e.body.path for e in reply.events if e.kind == "acknowledged"] == ["appended"]  # type: ignore[union-attr]
    assert transcript(reply.events).answer == reply.text


async def test_direct_half_an_answer_of_an_agent_that_fails_is_taken_back() -> None:
    breaking = ScriptedModel(lambda _: Line("You have 900 points and", pieces=["You have ", "900 points ", "and"], pace=3.0))
    card = AgentCard.model_validate(
        {"id": "rewards", "description": "Points.", "model": "offline", "policy": {"time_budget_ms": 4000}}
    )
    kit = small_kit([asks("rewards", "shop")], {"rewards": breaking, "shop": talking("Deals here.", delay=1)}, cards=[card])
    reply = await ask(kit, "direct")
    assert any("900" in text for _, text in words(reply)), "it was live before it failed"
    assert "900" not in reply.text == transcript(reply.events).answer
    assert reply.text.startswith("Deals here.") and "rewards" in reply.text


async def test_direct_words_before_a_tool_call_are_no_answer() -> None:
    async def look(**_: Any) -> str:
        return "4,975 points"

    tool = StructuredTool(name="look", description="Looks.", args_schema={"type": "object", "properties": {}}, coroutine=look)
    model = ScriptedModel(Line("Let me look that up.", calls=[("look", {})]), Line("You have 4,975 points."))
    card = AgentCard(id="rewards", description="Points.", model="offline", tools=("look",))
    kit = small_kit([asks("rewards")], {"rewards": model}, {"look": tool}, cards=[card])
    reply = await ask(kit, "direct")
    assert reply.text == transcript(reply.events).answer == "You have 4,975 points."
    assert not any("look that up" in text for _, text in words(reply))


@pytest.mark.parametrize("after", [0.5, 1.2, 2.0])
async def test_direct_a_stopped_turn_leaves_no_task_and_keeps_what_was_said(after: float) -> None:
    models = {"a": talking(*pieces_of("a", 5), delay=1, pace=0.5), "b": talking("B", delay=0.1)}
    turn = run_turn(TWO, ALICE, small_kit([asks("a", "b")], models), PATTERNS["direct"])
    await asyncio.sleep(after)
    turn.cancel()
    reply = await turn
    assert reply.status == "cancelled" and "B" in reply.text
    assert [t for t in asyncio.all_tasks() if t is not asyncio.current_task()] == []
