"""What guards never do, whatever a model emits."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, ToolMessage

from kit.compose.parts import Guards
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.clock import run_virtual
from kit.runtime.turn import Reply, run_turn
from tests.kits import ALICE, agents_asked, answering, small_kit

AGENTS = ("shop", "support", "rewards", "play")
WORDS = ("coffee", "receipt", "points", "games", "the", "and", "my", "tacos")
FEW = settings(max_examples=15, deadline=None, derandomize=True)

phrases = st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(" ".join)
calls = st.lists(st.tuples(st.sampled_from(AGENTS), phrases), min_size=1, max_size=5)
counts = st.integers(min_value=-1, max_value=9)


def line(made: list[tuple[str, str]], intents: int) -> Line:
    return Line(
        "Let me look.", calls=[(f"ask_{a}", {"query": q, "intent_count": intents}) for a, q in made]
    )


def run(text: str, first: Line, again: Line, cap: int = 8) -> tuple[Reply, ScriptedModel]:
    lines = iter([first, again])

    def say(messages: list[BaseMessage]) -> Line:
        return Line("Done.") if isinstance(messages[-1], ToolMessage) else next(lines)

    lead = ScriptedModel(say)
    kit = small_kit(
        lead,
        {agent: answering(f"From {agent}.") for agent in AGENTS},
        guards=Guards(),
        default_sub_agent="shop",
        support_agent="support",
        cap=cap,
    )

    async def turn() -> Reply:
        return await run_turn(text, ALICE, kit)

    return run_virtual(turn()), lead


@pytest.mark.req("SAT-4")
@FEW
@given(phrases, calls, counts, calls)
def test_no_guard_drops_the_last_call_and_every_id_is_answered_once(
    text: str, first: list[tuple[str, str]], intents: int, again: list[tuple[str, str]]
):
    reply, lead = run(text, line(first, intents), line(again, intents))
    assert len(agents_asked(reply)) >= 1
    last = lead.seen[-1]
    ids = [call["id"] for message in last for call in getattr(message, "tool_calls", ())]
    assert Counter(ids) == Counter(m.tool_call_id for m in last if isinstance(m, ToolMessage))
    assert max(Counter(ids).values()) == 1
    routing = reply.routing
    assert routing.intent_count == len(set(first))
    assert routing.intent_count + routing.later_calls <= len(routing.outcomes) + len(
        routing.refused
    ) + len(routing.dropped)
    assert reply.status == "ok"


@pytest.mark.req("SAT-5")
@FEW
@given(phrases, st.sampled_from(AGENTS), st.text(max_size=40))
def test_a_single_intent_is_verbatim_whatever_the_models_query(text: str, agent: str, query: str):
    reply, _ = run(text, line([(agent, query)], 1), Line("-"))
    assert agents_asked(reply) == [(agent, text)]
