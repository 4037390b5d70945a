"""A call of a tool that does not exist, or that nobody can read: its model is told, it is counted,
no person reads of it."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import StructuredTool

from kit.core.bodies.call import ToolEnded
from kit.core.bodies.guard import AccessDenied
from kit.core.card import AgentCard
from kit.core.outcome import WITHOUT, Answer, Failure
from kit.metrics.summary import metrics
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.agents.llm_agent import BORNE
from kit.runtime.turn import Reply, run_turn
from tests.kits import ALICE, SmallKit, asks, bodies, small_kit, stitched

pytestmark = pytest.mark.req("PC2-FR-15c")
INVENTED: tuple[str, Any] = ("internal_ledger_db", {"query": "coffee"})
BROKEN: tuple[str, Any] = ("find", '{"what": "cof')
NONSENSE: tuple[str, Any] = ("find", "coffee please")
GOOD: tuple[str, Any] = ("find", {"what": "coffee"})
ROUTED_BADLY: dict[str, tuple[str, Any]] = {
    "invented": ("ask_internal_ledger_db", {"query": "coffee", "intent_count": 1}),
    "broken": ("ask_shop", '{"query": "cof'),
    "nonsense": ("ask_shop", "coffee"),
}


async def find(what: str = "") -> str:
    return f"two {what} deals"


async def turn(
    lead: Sequence[Any], lines: Sequence[Any] = ("Two deals.",), **more: Any
) -> tuple[Reply, SmallKit]:
    card = AgentCard(id="shop", description="About shop.", model="offline", tools=("find",))
    tool = StructuredTool.from_function(coroutine=find, name="find", description="Finds.")
    kit = small_kit(
        ScriptedModel(*lead, **more),
        {"shop": ScriptedModel(*lines, **more)},
        {"find": tool},
        [card],
    )
    return await run_turn("coffee please", ALICE, kit), kit


def denied(reply: Reply) -> list[tuple[str, str, str]]:
    return [(body.agent, body.name, body.because) for body in bodies(reply, AccessDenied)]


@pytest.mark.parametrize(
    ("bad", "because", "words", "streams"),
    [
        (INVENTED, "not_on_card", "no such tool", True),
        (INVENTED, "not_on_card", "no such tool", False),
        # What comes whole was parsed by its provider's client.
        (BROKEN, "bad_arguments", "could not be read", True),
        (NONSENSE, "bad_arguments", "could not be read", False),
    ],
)
async def test_a_sub_agent_is_told_calls_again_and_its_answer_is_whole(
    bad: tuple[str, Any], because: str, words: str, streams: bool
):
    heard: list[str] = []

    def again(messages: list[BaseMessage]) -> Line:
        heard.append(str(messages[-1].content))
        return Line(calls=[GOOD])

    script = [Line("Let me look.", calls=[bad]), again, "Two coffee deals."]
    reply, kit = await turn([asks("shop"), stitched], script, disable_streaming=not streams)
    [answer] = reply.outcomes
    assert isinstance(answer, Answer) and answer.text == reply.text == "Two coffee deals."
    assert not answer.data_faults and words in heard[0]
    assert denied(reply) == [("shop", bad[0], because)]
    assert metrics(kit.store).number("model_faults_total") == 1
    [refused, done] = [body.error for body in bodies(reply, ToolEnded)]
    assert refused is not None and done is None


@pytest.mark.parametrize("bad", [BROKEN, NONSENSE])
async def test_a_model_whose_only_calls_nobody_could_read_has_looked_up_nothing(
    bad: tuple[str, Any],
):
    def repeat(messages: list[BaseMessage]) -> Line:
        return Line(str(messages[-1].content))

    reply, _ = await turn([asks("shop"), stitched], [Line(calls=[bad]), repeat])
    [failure] = reply.outcomes
    assert isinstance(failure, Failure)
    assert (failure.axis, failure.reason) == ("invocation", "bad_arguments")
    assert "shop" in reply.text and "could not be read" not in reply.text
    advice = "Coffee keeps best in a closed tin."
    reply, kit = await turn([asks("shop"), stitched], [Line(calls=[bad]), advice])
    [answer] = reply.outcomes
    assert isinstance(answer, Answer) and reply.parts.partly == 1
    assert metrics(kit.store).number("sub_agent_data_faults_total", "shop") == 0, (
        "it is the model's"
    )
    assert advice in reply.text and WITHOUT in reply.text


async def test_a_bad_call_beside_a_good_one_costs_neither_the_good_one_nor_the_answer():
    reply, kit = await turn(
        [asks("shop"), stitched], [Line(calls=[GOOD, INVENTED, NONSENSE]), "Two coffee deals."]
    )
    assert isinstance(reply.outcomes[0], Answer) and reply.text == "Two coffee deals."
    assert (
        metrics(kit.store).number("model_faults_total") == 2
        and metrics(kit.store).number("failures_total", "axis 2: data") == 0
    )


async def test_two_bad_replies_in_a_row_are_borne_and_a_third_is_the_end():
    bad = Line("Let me look that up.", calls=[INVENTED])
    patient, _ = await turn([asks("shop"), stitched], [bad] * BORNE + ["Two coffee deals."])
    assert BORNE == 2 and isinstance(patient.outcomes[0], Answer)
    reply, kit = await turn([asks("shop"), stitched], [bad] * (BORNE + 1))
    [failure] = reply.outcomes
    assert isinstance(failure, Failure) and (failure.axis, failure.reason) == (
        "invocation",
        "insufficient",
    )
    assert (
        "Let me look that up" not in reply.text
        and metrics(kit.store).number("model_faults_total") == 3
    )


@pytest.mark.parametrize("kind", ROUTED_BADLY)
async def test_an_orchestrator_is_told_and_routes_again(kind: str):
    bad = ROUTED_BADLY[kind]
    answered: list[str] = []

    def again(messages: list[BaseMessage]) -> Line:
        answered.extend(m.tool_call_id for m in messages if isinstance(m, ToolMessage))
        return asks("shop")

    first = Line("Let me look.", calls=[bad, bad], ids=["x", "x"])
    reply, kit = await turn([first, again, "Two deals."])
    assert [(o.agent, o.kind) for o in reply.outcomes] == [("shop", "answer")]
    assert reply.text == "Two deals." and "ledger" not in reply.preamble
    assert [(agent, name) for agent, name, _ in denied(reply)] == [("orchestrator", bad[0])] * 2
    assert metrics(kit.store).number("model_faults_total") == 2
    assert len(answered) == len(set(answered)) == 2, "each call is answered under an id of its own"
