"""What the kit tells models, and calls that a model writes as text, are read by no user."""

import re

import pytest
from langchain_core.tools import tool

from kit.core.bodies.speech import Text, TextReplaced
from kit.core.card import AgentCard
from kit.core.outcome import BESIDE, SET_ASIDE, Failure, tell, tell_dropped
from kit.models.scripted import Line, ScriptedModel
from kit.patterns.direct_streaming import DIRECT
from kit.patterns.supervisor import TURNS
from kit.runtime.agents.llm_agent import NEXT
from kit.runtime.answer.acknowledge import Verdict, ask_again
from kit.runtime.answer.owed import Owed
from kit.runtime.answer.raw_text import looks_raw
from kit.runtime.call_tool import NO_SUCH_TOOL, UNREADABLE
from kit.runtime.turn import run_turn
from kit.tools.mcp import tools as mcp
from tests.kits import ALICE, answering, asks, bodies, small_kit

FAILED = Failure(
    call_id="c", agent="shop", axis="invocation", reason="timeout", suggestion="9 points"
)
TOLD = {
    "unreadable arguments": UNREADABLE,
    "arguments of a server": mcp.UNREADABLE,
    "no such tool": NO_SUCH_TOOL,
    "set aside": SET_ASIDE,
    "hand-over": NEXT,
    "failure": tell(FAILED.model_copy(update={"suggestion": None})),
    "unsure": tell(FAILED),
    "over the cap": tell_dropped("shop"),
    "components": f"({BESIDE} offer of-1: Coffee)",
    "one at a time": TURNS,
    "composing again": ask_again(Verdict(raw=True, claims=("9",)), Owed(failed=("shop",))),
}


@tool
def look_up(query: str) -> str:
    """Looks something up."""
    return "Ember Hill has beans."


@pytest.mark.req("PC2-FR-15c")
@pytest.mark.parametrize("words", TOLD.values(), ids=TOLD)
def test_what_models_are_told_is_known_as_raw(words: str):
    assert looks_raw(words)


@pytest.mark.req("PC2-FR-15c")
@pytest.mark.parametrize("text", [UNREADABLE, NO_SUCH_TOOL], ids=["unreadable", "no such tool"])
@pytest.mark.parametrize("pattern", ["mediated", "direct"])
async def test_what_an_agent_was_told_is_not_read_where_it_repeats_it(text: str, pattern: str):
    echo = f"Ember Hill has beans. {text}"
    lead = ScriptedModel(asks("shop"), echo, echo)
    kit = small_kit(lead, {"shop": answering(echo)})
    reply = await run_turn("beans?", ALICE, kit, DIRECT if pattern == "direct" else None)
    assert reply.text == "Ember Hill has beans."


async def test_a_user_who_brings_such_words_gets_them_back():
    words = 'He wrote "do not speak of this" twice.'
    kit = small_kit([asks("shop"), words], {"shop": answering("Twice.")})
    assert (await run_turn("what does do not speak of this mean?", ALICE, kit)).text == words


WRITTEN = [
    '{"name": "look_up", "arguments": {"query": "beans"}}',
    '```json\n{"tool": "look_up", "args": {"query": "beans"}}\n```',
    '<tool_call>\n{"name": "look_up", "arguments": {"query": "beans"}}\n</tool_call>',
    '{"tool_calls": [{"function": {"name": "finder", "arguments": "{}"}}]}',
    '{"type": "function", "function": {"name": "finder", "parameters": {"query": "beans"}}}',
    'Let me see. {"name": "look_up", "arguments": {"query": "beans"}}',
    'look_up(query="beans")',
    '```python\nlook_up(query="beans")\n```',
    '{"action": "finder", "action_input": {"query": "beans"}}',
]


@pytest.mark.req("PC2-FR-15c")
@pytest.mark.parametrize("text", WRITTEN)
async def test_a_call_that_is_written_as_text_is_a_fault_and_not_read(text: str):
    card = AgentCard(id="shop", description="Finds.", model="offline", tools=("look_up",))
    lead = ScriptedModel(asks("shop"), text, text)
    kit = small_kit(lead, {"shop": answering(text)}, {"look_up": look_up}, cards=[card])
    reply = await run_turn("beans?", ALICE, kit)
    (outcome,) = reply.outcomes
    assert isinstance(outcome, Failure) and outcome.reason == "contract_violation"
    assert reply.text == "I wasn't able to get an answer about shop right now."


@pytest.mark.req("PC2-FR-15c")
@pytest.mark.parametrize("text", WRITTEN[1:3])
async def test_a_call_that_the_orchestrator_writes_as_its_answer_is_never_seen(text: str):
    lead = ScriptedModel(asks("shop"), Line(text, pieces=[text[:9], text[9:]], pace=0.1), text)
    reply = await run_turn("beans?", ALICE, small_kit(lead, {"shop": answering("Two kinds.")}))
    read = [body.text for body in bodies(reply, Text, TextReplaced)]
    assert reply.text == "Two kinds." and '"' not in "".join(read)


@pytest.mark.parametrize(
    "text",
    [
        "Ember Hill (downtown) has beans.",
        '{"name": "Iron Wolf", "studio": "Ember"}',
        'A request holds {"name": "a tool", "arguments": {}} and an id.',
        "Call look_up(query) in your script.",
    ],
)
async def test_words_about_calls_and_other_json_stand(text: str):
    card = AgentCard(id="shop", description="Finds.", model="offline", tools=("look_up",))
    shop = ScriptedModel(Line(calls=[("look_up", {"query": "b"})]), text)
    kit = small_kit([asks("shop"), "Done."], {"shop": shop}, {"look_up": look_up}, cards=[card])
    (outcome,) = (await run_turn("beans?", ALICE, kit)).outcomes
    assert outcome.kind == "answer" and re.sub(r"\s", "", outcome.text) == re.sub(r"\s", "", text)
