"""Ways to overwhelm a turn, played on a real loop: it ends in plain words, its trace can be read,
and nobody else waited."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from pydantic import PrivateAttr

from kit.compose.locale import ENGLISH
from kit.core.context import OPERATOR
from kit.core.limits import DEPTH
from kit.core.outcome import ComponentPayload
from kit.models.asynchronous import AsyncChatModel
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.handle import Reply
from kit.runtime.turn import run_turn
from kit.settings import Settings
from kit.wire import open_kit
from tests.kits import ALICE, SmallKit, answering, asks, failing, small_kit, stitched
from tests.security.loop_gap import LONGEST_GAP, LoopGap

pytestmark = pytest.mark.realtime
PLAYS = 3
"""An attack that holds the loop holds it every time: the least of these many gaps counts."""


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


class Flood(AsyncChatModel):
    """Streams the same piece and never waits."""

    piece: str
    count: int

    @property
    def _llm_type(self) -> str:
        return "flood"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self.bind(**options)

    async def _astream(
        self, messages: Any, *args: Any, **options: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for _ in range(self.count):
            yield ChatGenerationChunk(message=AIMessageChunk(content=self.piece))


class Reports(ScriptedModel):
    """Says one thing and reports this usage for it."""

    _tokens: int = PrivateAttr(default=0)

    def __init__(self, tokens: int):
        super().__init__("Hello.")
        self._tokens = tokens

    def _usage(self, messages: Any, line: Line) -> Any:
        return {
            "input_tokens": self._tokens,
            "output_tokens": self._tokens,
            "total_tokens": self._tokens,
        }


def component(payload: str) -> str:
    return f'Here: <component type="offer">{payload}</component> done.'


def said(text: str, **options: Any) -> dict[str, BaseChatModel]:
    return {
        "orchestrator": ScriptedModel(asks("shop"), stitched),
        "shop": answering(text),
        **options,
    }


SPACES = " " * 15_000
ATTACKS: dict[str, Callable[[], dict[str, Any]]] = {
    "white space in an answer that owns up": lambda: {
        "orchestrator": ScriptedModel(
            asks("shop"), f"I could not{SPACES}reach{SPACES}shop.", f"Sorry.{SPACES}x"
        ),
        "shop": failing(OSError("down")),
    },
    "an error of 96 KB": lambda: {
        "orchestrator": ScriptedModel(asks("shop"), stitched),
        "shop": failing(OSError("a1b2/c3 " * 12_000)),
    },
    "a million chunks": lambda: {
        "orchestrator": Flood(piece="word ", count=1_000_000),
        "shop": answering("x"),
    },
    "5,000 calls": lambda: {
        "orchestrator": ScriptedModel(
            Line(calls=[("ask_shop", {"query": str(n)}) for n in range(5_000)]), "Sorry."
        ),
        "shop": answering("x"),
    },
    "arguments 300 deep": lambda: {
        "orchestrator": ScriptedModel(
            Line(calls=[("ask_shop", {"query": "x", "more": nested(300)})]),
            "Sorry.",
            "Sorry.",
            "Sorry.",
        ),
        "shop": answering("x"),
    },
    "a component 300 deep": lambda: said(component(json.dumps(nested(300)))),
    "a component 100,000 deep": lambda: said(component("[" * 100_000)),
    "a component with a number that is none": lambda: said(
        component('{"id": "a", "price": 1e999, "x": NaN}')
    ),
    "components inside components": lambda: said("<comp<component/>onent" * 3_000),
    "a component that never ends": lambda: {
        "orchestrator": ScriptedModel(Line(pieces=["<component "] + ["x "] * 15_000), "x"),
        "shop": answering("x"),
    },
    "usage beyond belief": lambda: {"orchestrator": Reports(10**19), "shop": answering("x")},
    "usage below nothing": lambda: {"orchestrator": Reports(-(10**6)), "shop": answering("x")},
}


async def play(models: dict[str, Any]) -> tuple[SmallKit, Reply, float]:
    lead = models.pop("orchestrator")
    kit = small_kit(lead, models)
    await run_turn(
        "what is loaded once",
        ALICE,
        small_kit(ScriptedModel(asks("shop"), stitched), {"shop": answering("is here")}),
    )
    async with LoopGap() as gap:
        reply = await run_turn("hi", ALICE, kit)
    return kit, reply, gap.longest


@pytest.mark.req("S-1", "S-5")
@pytest.mark.parametrize("attack", ATTACKS)
async def test_no_attack_holds_the_loop_or_leaves_what_nobody_can_read(attack: str):
    gaps: list[float] = []
    for _ in range(PLAYS):
        kit, reply, gap = await play(ATTACKS[attack]())
        assert_readable(kit, reply)
        gaps.append(gap)
        if gap < LONGEST_GAP:
            break
    assert min(gaps) < LONGEST_GAP


def assert_readable(kit: SmallKit, reply: Reply) -> None:
    row = kit.store.turn(reply.turn_id, OPERATOR)
    assert row is not None and row.status == reply.status != "running" and reply.saved
    assert [event.seq for event in kit.store.events(reply.turn_id, OPERATOR)] == [
        event.seq for event in reply.events
    ]
    assert 0 <= reply.usage.input_tokens < 10**9 and 0 <= reply.usage.output_tokens < 10**9
    assert len(reply.text) < 500_000


@pytest.mark.req("S-1")
@pytest.mark.parametrize(
    "message",
    [
        '"' + " " * 1_000 + 'x "',
        "x. " * 5_000,
        "xa deals and xa stores, " * 600,
    ],
)
async def test_no_message_holds_the_loop(message: str):
    async with open_kit(Settings(store=":memory:", pace=0.0, model="offline")) as kit:
        await kit.ask("find coffee deals and how many points do I have", kit.session("warm"))
        gaps: list[float] = []
        for number in range(PLAYS):
            # A message of its own each time: what was worked out of one is remembered.
            attack = message.replace("x", chr(ord("f") + number)).replace(
                "a", chr(ord("k") + number)
            )
            async with LoopGap() as gap:
                reply = await kit.ask(attack, kit.session(f"s{number}"))
            assert reply.status == "ok" or ENGLISH.sentences.nobody in reply.text
            gaps.append(gap.longest)
            if gap.longest < LONGEST_GAP:
                break
    assert min(gaps) < LONGEST_GAP


@pytest.mark.req("S-5")
def test_a_payload_is_refused_where_it_is_made():
    for payload in (nested(DEPTH + 1), {"x": float("inf")}, {"x": 10**400}, {"x": "y" * 1_000_001}):
        with pytest.raises(ValueError, match="it holds"):
            ComponentPayload(type="offer", payload=payload)
    assert ComponentPayload(type="offer", payload=nested(DEPTH)).payload == nested(DEPTH)
