"""What a model was sent is put together again from the store: its prompt, its tools, earlier turns, every message."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from kit import Cassette, Settings, open_kit
from kit.core.bodies.call import ModelStarted, RequestCall, RequestMessage
from kit.core.card import AgentCard, Handoff, HandoffField
from kit.core.context import OPERATOR
from kit.core.record import CohortPrompt, Message, TurnRecord
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.recording.recorded_call import Request, read
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from kit.stores.model_request import (
    ModelRequest,
    as_json,
    model_request,
)
from kit.stores.turn_store import TurnStore
from kit.ui.traces.model_request import request_html
from tests.kits import ALICE, SmallKit, answering, asks, leading, small_kit, stitched

DIALOGUE = (
    "what are my points, burger deals near me, and where can I buy a kettle?",
    "how do I redeem them?",
    "which of those offers is the cheapest, and how many points do I have?",
    "points, receipts, burgers, games, coffee and a kettle please",
)


def settings(tmp_path: Path) -> Settings:
    return Settings.read({}).with_(model="offline", store=str(tmp_path / "kit.db"), pace=0.0)


def as_recorded(request: ModelRequest) -> Request:
    """The request in the words of a recording: tools, then each message with its calls."""
    tools = [tool.get("function", tool) for tool in request.tools]
    parts = [(f"tool {tool['name']}", json.dumps(tool, sort_keys=True, indent=1)) for tool in tools]
    system = [RequestMessage(role="system", text=request.system)] if request.system else []
    messages = [*system, *request.history, *request.messages]
    return (*parts, *((f"message {n} ({m.role})", words(m)) for n, m in enumerate(messages, 1)))


def words(message: RequestMessage) -> str:
    calls = (
        f"calls {call.name}({json.dumps(call.args, sort_keys=True)})" for call in message.calls
    )
    return "\n".join([message.text, *calls])


def requests(store: TurnStore, turns: Sequence[TurnRecord]) -> list[ModelRequest]:
    """Every request of these turns, in order."""
    spans = [
        (turn, e.span_id)
        for turn in turns
        for e in store.events(turn.id, OPERATOR)
        if isinstance(e.body, ModelStarted)
    ]
    return [
        request
        for turn, span_id in spans
        if (request := model_request(store, turn, span_id)) is not None
    ]


@pytest.mark.req("K-31")
@pytest.mark.parametrize("pattern", ["mediated", "monolith", "swarm"])
async def test_what_a_recording_has_of_each_call_stands_in_the_trace(
    pattern: str, tmp_path: Path
) -> None:
    """Prompt and tools, the lines of earlier turns, a retry's and a second composition's other
    prompt: byte for byte."""
    path = tmp_path / "calls.jsonl"
    async with open_kit(settings(tmp_path), cassette=Cassette(path, "record"), faults=True) as kit:
        session = kit.session("talk")
        for question, faults in zip(DIALOGUE, ((), ("rewards=timeout",), (), ()), strict=True):
            await kit.ask(question, session, pattern, faults=faults)
        rebuilt = requests(kit.store, kit.store.turns("talk"))
    takes = [take for take in read(path)[1].values() if take.request[0][0] == "model"]
    sent = Counter(tuple(p for p in take.request[1:] if is_told(p)) for take in takes)
    assert [request.gap for request in rebuilt if request.gap] == []
    assert Counter(map(as_recorded, rebuilt)) == sent
    assert len(rebuilt) >= 8 and any(request.history for request in rebuilt)


def is_told(part: tuple[str, str]) -> bool:
    """A helper's one tool belongs to its job, and is no part of a trace."""
    return not part[0].startswith(("tool submit_", "tool route"))


async def play(kit: SmallKit, *messages: str) -> list[list[ModelRequest]]:
    """The requests of each turn; the small kit's prompts are kept as open_kit keeps them."""
    kit.store.keep_prompts(kit.team.prompts)
    return [told(kit, (await run_turn(message, ALICE, kit)).turn_id) for message in messages]


def told(kit: SmallKit, turn_id: str) -> list[ModelRequest]:
    """The requests of a turn in the order in which they were made."""
    turn = kit.store.turn(turn_id, OPERATOR)
    assert turn is not None
    return requests(kit.store, [turn])


def seen(model: ScriptedModel) -> list[list[str]]:
    return [[words(message_as_told(message)) for message in thread] for thread in model.seen]


def message_as_told(message: BaseMessage) -> RequestMessage:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    told_calls = tuple(RequestCall(name=call["name"], args=call["args"]) for call in calls)
    return RequestMessage(role=message.type, text=str(message.text), calls=told_calls)


def lines(request: ModelRequest) -> list[str]:
    system = [request.system] if request.system else []
    return [*system, *map(words, (*request.history, *request.messages))]


@pytest.mark.req("K-31")
async def test_a_conversation_that_was_summed_up_is_told_as_it_was_sent() -> None:
    lead = leading(asks("a", intents=1))
    helper = ScriptedModel(
        lambda _: Line(calls=[("submit_summary", {"summary": "They spoke of a."})])
    )
    kit = small_kit(lead, {"a": answering("A")}, compact_after=3, compact_keep=1)
    kit.team = bind(kit.team.deck, {"orchestrator": lead, "a": answering("A"), "helper": helper})
    every = [
        request
        for turn in await play(kit, *(f"number {n} of a" for n in range(7)))
        for request in turn
    ]
    assert [lines(request) for request in every if request.agent == "orchestrator"] == seen(lead)
    assert [lines(request) for request in every if request.agent == "summary"] == seen(helper)
    assert len(helper.seen) >= 2 and all(request.gap == "" for request in every)


@pytest.mark.req("K-31")
async def test_a_turn_that_was_at_work_beside_is_no_earlier_one() -> None:
    kit = small_kit(leading(asks("a", intents=1)), {"a": answering("A", 1.0)})
    await play(kit, "first")
    beside = run_turn("beside", ALICE, kit)
    await asyncio.sleep(0.5)
    reply = await run_turn("last", ALICE, kit)
    await beside
    for request in told(kit, reply.turn_id):
        assert request.gap == "" and "beside" not in as_json(request)


@pytest.mark.req("K-31")
async def test_a_prompt_is_kept_once_and_personal_values_and_keys_never() -> None:
    """A value too short to be hidden wherever its characters stand is hidden as a word; ten turns
    keep one prompt an agent."""
    card = AgentCard(
        id="a",
        description="d",
        model="offline",
        handoff=Handoff(fields={"shoe": HandoffField(pii=True)}),
    )
    calls = Line(
        "Let me look.", calls=[("ask_a", {"query": "boots", "intent_count": 1, "shoe": "7"})]
    )
    kit = small_kit(
        leading(calls),
        {"a": answering("A")},
        cards=[card],
    )
    kit.team = replace(kit.team, secrets=frozenset({"hunter2-hunter2"}))
    turns = [await play(kit, "boots, and my key is hunter2-hunter2") for _ in range(10)]
    text = "".join(as_json(request) for (turn,) in turns for request in turn)
    assert "shoe: [personal]" in text and "shoe: 7" not in text and '"7"' not in text
    assert "hunter2" not in text and "[secret]" in text
    assert kit.store.read("SELECT agent, count(*) FROM prompts GROUP BY agent") == [
        ("a", 1),
        ("orchestrator", 1),
    ]


@pytest.mark.req("K-31")
async def test_what_is_not_in_the_store_is_said() -> None:
    """History that a caller brought along, and the prompt of a team that was bound elsewhere."""
    kit = small_kit([asks("a"), stitched], {"a": answering("A")})
    history = [
        Message(turn_id="t", role="user", text="hi"),
        Message(turn_id="t", role="assistant", text="yo"),
    ]
    reply = await run_turn("one", ALICE, kit, history=history)
    turn = kit.store.turn(reply.turn_id, OPERATOR)
    assert turn is not None
    first = requests(kit.store, [turn])[0]
    assert (
        "2 earlier messages are not in this store" in first.gap
        and f"cohort {first.cohort} was not kept" in first.gap
    )


def test_a_tool_that_changed_is_kept_beside_what_it_was(store: TurnStore) -> None:
    prompt = CohortPrompt(cohort="c", agent="a", text="Be kind.", tools=({"name": "look"},))
    store.keep_prompts([prompt])
    between = time.time()
    newer = prompt.replace(tools=({"name": "look", "description": "Looks."},))
    store.keep_prompts([newer])
    store.keep_prompts([newer])
    assert store.prompt("c", between) == prompt and store.prompt("c", time.time()) == newer
    assert store.prompt("c", 0.0) is None and store.read("SELECT count(*) FROM prompts") == [(2,)]


def test_a_request_on_the_page_folds_what_is_stable_and_lets_no_word_act() -> None:
    evil = "<script>alert(1)</script>"
    message = RequestMessage(
        role="ai", text=evil, calls=(RequestCall(name=evil, args={"query": evil}),)
    )
    request = ModelRequest(
        agent=evil,
        model="m",
        purpose="work",
        cohort=evil,
        prompt=evil,
        rest=evil,
        tools=({"name": evil},),
        messages=(message,),
        gap=evil,
    )
    html = request_html(request)
    assert evil not in html and html.count("<details>") == 2 and "<details open" not in html
    assert json.loads(as_json(request))["messages"][1]["calls"] == [
        {"name": evil, "args": {"query": evil}}
    ]
