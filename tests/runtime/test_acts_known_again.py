"""An act is known again by what its tool makes of a call, however its model spells it; and nobody is asked for a yes
to a call that its tool would refuse."""

import asyncio
import datetime
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import StructuredTool
from pydantic import BaseModel

from kit.core.bodies.call import ToolEnded
from kit.core.bodies.turn import ApprovalAsked
from kit.core.card import AgentCard
from kit.core.context import OPERATOR
from kit.core.event import Event
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.act_ledger import DONE_BEFORE, UNCERTAIN
from kit.runtime.handle import Reply
from kit.tools.tool import LimitedTool, ToolLimits, tool_context
from kit.wire import Kit, open_kit
from tests.kits import OFFLINE, asks, bodies, leading, small_deck

Arguments = dict[str, Any]
ONCE = ToolLimits(once=True)
ASKS = ToolLimits(confirm=True)
PAY_SCHEMA = {
    "type": "object",
    "properties": {
        "euros": {"type": "integer"},
        "account": {"type": "string", "default": "dues"},
        "note": {"type": ["string", "null"]},
    },
    "required": ["euros"],
}


class Bank:
    """A deck of one agent whose tool pays, called with each of some arguments in turn, one list of them a message."""

    def __init__(self, *turns: list[Arguments], by_schema: bool = False):
        self.turns = list(turns)
        self.paid: list[tuple[Any, ...]] = []
        self.keys: list[str] = []
        self.tool: Any = self.pay
        if by_schema:
            self.tool = StructuredTool(
                name="pay", description="Pays.", args_schema=PAY_SCHEMA, coroutine=self.pay
            )

    async def pay(self, euros: int, account: str = "dues", note: str | None = None) -> str:
        """Pays."""
        self.keys.append(tool_context().idempotency_key())
        self.paid.append((euros, account, note))
        return f"{euros} euros were paid."

    def says(self, messages: list[BaseMessage]) -> Line:
        calls = self.turns[0]
        results = [message for message in messages if isinstance(message, ToolMessage)]
        if len(results) < len(calls):
            return Line(calls=[(self.name, calls[len(results)])])
        self.turns.pop(0)
        return Line(str(results[-1].content))

    def opened(self, limits: ToolLimits = ONCE, tool: str = "pay") -> Any:
        self.name = tool
        card = AgentCard(id="bank", description="Pays.", model="offline", tools=(tool,))
        models = {"orchestrator": leading(asks("bank")), "bank": ScriptedModel(self.says)}
        return open_kit(
            OFFLINE,
            deck=small_deck(["bank"], [card]),
            models=models,
            tools={tool: LimitedTool(self.tool, limits)},
        )


async def told(kit: Kit, message: str = "pay 20 euros") -> Reply:
    return await kit.ask(message, kit.session("s"))


SAME = [
    ({"euros": 20}, {"euros": "20"}),
    ({"euros": "20"}, {"euros": 20.0}),
    ({"euros": 20}, {"euros": 20, "account": "dues"}),
    ({"euros": 20, "note": None}, {"account": "dues", "euros": 20.0, "note": ""}),
    ({"euros": 20}, {"euros": 20, "currency": "EUR"}),
]


@pytest.mark.req("SO-12")
@pytest.mark.parametrize(("first", "second"), SAME)
async def test_an_act_is_made_once_in_a_turn_and_by_go_on_however_its_arguments_are_spelled(
    first: Arguments, second: Arguments
):
    bank = Bank([first, second], [second])
    async with bank.opened() as kit:
        assert "20 euros were paid." in (await told(kit)).text
        assert len(bank.paid) == 1
        assert DONE_BEFORE in (await told(kit, "go on")).text
    assert len(bank.paid) == 1


@pytest.mark.req("SO-12")
@pytest.mark.parametrize(("first", "second"), SAME[:4])
async def test_an_act_of_a_tool_with_a_plain_schema_is_known_again_too(
    first: Arguments, second: Arguments
):
    bank = Bank([first, second], [second], by_schema=True)
    async with bank.opened() as kit:
        assert "20 euros were paid." in (await told(kit)).text
        assert DONE_BEFORE in (await told(kit, "go on")).text
    assert [(type(euros), euros, account) for euros, account, _ in bank.paid] == [(int, 20, "dues")]


@pytest.mark.req("SO-12")
async def test_other_arguments_are_another_act():
    calls: list[Arguments] = [
        {"euros": 20},
        {"euros": 21},
        {"euros": 20, "account": "harbour"},
        {"euros": 20, "note": "May"},
    ]
    bank = Bank(calls)
    async with bank.opened() as kit:
        await told(kit)
    assert len(bank.paid) == 4 and len({*bank.keys}) == 4


@pytest.mark.req("SO-12")
@pytest.mark.parametrize("is_idempotent", [True, False])
async def test_an_act_that_was_cut_off_is_known_again_by_another_spelling(is_idempotent: bool):
    """Its process died in the middle of it, and the model of the next one writes the amount as text."""
    bank = Bank([{"euros": 20}], [{"euros": "20", "account": "dues"}])
    async with bank.opened(ToolLimits(once=True, idempotent=is_idempotent)) as kit:
        whole = await told(kit)
        record = kit.store.turn(whole.turn_id, OPERATOR)
        assert record is not None
        began = [event.kind for event in whole.events].index("act_started")
        kit.store.end_turn(record.replace(status="interrupted"), whole.events[: began + 1], [])
        reply = await kit.resume(whole.turn_id)
    if is_idempotent:
        assert len(bank.paid) == 2 and len({*bank.keys}) == 1
    else:
        assert UNCERTAIN in reply.text and len(bank.paid) == 1


@pytest.mark.req("K-12")
@pytest.mark.parametrize("spelled", [{"euros": 20}, {"euros": "20", "note": ""}])
async def test_what_an_earlier_version_stored_by_the_words_of_its_model_is_known_again(
    spelled: Arguments,
):
    bank = Bank([spelled], [spelled])
    words = {name: value for name, value in spelled.items() if value}
    former_key = f"pay {json.dumps(words)}"
    async with bank.opened(ASKS) as kit:
        reply = await told(kit)
        record = kit.store.turn(reply.turn_id, OPERATOR)
        assert record is not None
        events: list[Event] = []
        for event in reply.events:
            if isinstance(event.body, ApprovalAsked):
                event = event.replace(body=event.body.replace(key=former_key))
            events.append(event)
        kit.store.end_turn(record, events, [])
        ended = await kit.resume(reply.turn_id, {former_key: True})
    assert "20 euros were paid." in ended.text and len(bank.paid) == 1


class Guest(BaseModel):
    """Who comes."""

    name: str
    age: int = 18


def spelled_number(number: int) -> st.SearchStrategy[Any]:
    return st.sampled_from([number, float(number), str(number)])


def spelled_truth(truth: bool) -> st.SearchStrategy[Any]:
    return st.sampled_from([truth, int(truth), str(truth).lower(), "yes" if truth else "no"])


@st.composite
def booking(draw: st.DrawFn, nights: int, late: bool, rooms: list[str], day: datetime.date) -> Any:
    """One of the many spellings of the same arguments."""
    arguments: Arguments = {
        "nights": draw(spelled_number(nights)),
        "price": draw(st.sampled_from([nights, f"{nights}.00", f"{nights}.0"])),
        "rooms": draw(st.permutations(rooms)),
        "day": draw(st.sampled_from([day.isoformat(), f"{day.isoformat()}T00:00:00"])),
        "guest": {"name": "Ana", **draw(st.sampled_from([{}, {"age": 18}, {"age": "18"}]))},
    }
    if late or draw(st.booleans()):
        arguments["late"] = draw(spelled_truth(late))
    if draw(st.booleans()):
        arguments["note"] = None
    names = draw(st.permutations(list(arguments)))
    return {name: arguments[name] for name in names}


@st.composite
def two_spellings(draw: st.DrawFn) -> tuple[Arguments, Arguments]:
    drawn = booking(
        nights=draw(st.integers(min_value=0, max_value=30)),
        late=draw(st.booleans()),
        rooms=draw(st.lists(st.sampled_from("abcdef"), unique=True)),
        day=draw(st.dates()),
    )
    return draw(drawn), draw(drawn)


async def bookings(*calls: Arguments) -> list[tuple[Any, ...]]:
    """What is booked where these calls are made in one turn."""
    booked: list[tuple[Any, ...]] = []

    async def pay(
        nights: int,
        price: Decimal,
        rooms: set[str],
        day: datetime.date,
        guest: Guest,
        late: bool = False,
        note: str | None = None,
    ) -> str:
        """Books."""
        booked.append((nights, price, rooms, day, guest, late, note))
        return "Booked."

    bank = Bank([*calls])
    bank.tool = pay
    async with bank.opened() as kit:
        reply = await told(kit)
    assert "Booked." in reply.text
    return booked


@pytest.mark.req("SO-12")
@settings(max_examples=40, deadline=None, derandomize=True)
@given(two_spellings())
def test_any_two_spellings_of_the_same_arguments_are_one_act(calls: tuple[Arguments, Arguments]):
    assert len(asyncio.run(bookings(*calls))) == 1


@pytest.mark.req("K-12")
@pytest.mark.parametrize("by_schema", [True, False])
@pytest.mark.parametrize("limits", [ASKS, ONCE])
async def test_nobody_is_asked_for_a_yes_to_a_call_that_does_not_fit_its_tool(
    limits: ToolLimits, by_schema: bool
):
    """The model is told at once, and makes the call again."""
    bank = Bank([{"euros": "fifty"}, {"account": "dues"}, {"euros": 50}], by_schema=by_schema)
    async with bank.opened(limits) as kit:
        reply = await told(kit, "pay 50 euros")
        if limits.confirm:
            [asked] = bodies(reply, ApprovalAsked)
            assert "50" in asked.question and "fifty" not in asked.question
            reply = await kit.resume(reply.turn_id, True)
    failures = [end.failure.kind for end in bodies(reply, ToolEnded) if end.failure]
    assert failures[:2] == ["bad_arguments", "bad_arguments"]
    assert "50 euros were paid." in reply.text and len(bank.paid) == 1


@pytest.mark.req("K-12")
@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (ToolLimits(confirm="Pay {euros} euros of the {account}?"), "Pay 20 euros of the dues"),
        (ONCE, "pay"),
    ],
)
async def test_an_act_whose_end_is_not_known_is_called_by_its_name(limits: ToolLimits, name: str):
    """Beside another part, "this" says nothing of what was done."""

    async def pay(euros: int, account: str = "dues") -> str:
        """Pays."""
        raise ConnectionError("the answer was lost")

    bank = Bank([{"euros": 20}], [{"euros": 20}])
    bank.tool = pay
    async with bank.opened(limits) as kit:
        reply = await told(kit)
        if reply.status == "paused":
            reply = await kit.resume(reply.turn_id, True)
        again = await told(kit, "try again")
    assert f"{name}: {UNCERTAIN}" in reply.text and f"{name}: {UNCERTAIN}" in again.text
    assert "interrupted" not in UNCERTAIN, "it ended with an error"


@pytest.mark.req("K-12")
async def test_the_kit_words_its_own_question_plainly():
    async def pay(euros: int, for_boats: list[str]) -> str:
        """Pays."""
        return "Paid."

    bank = Bank([{"euros": 20, "for_boats": ["Otter", "Heron"]}])
    bank.tool = pay
    async with bank.opened(ASKS, tool="harbour__pay_dues") as kit:
        reply = await told(kit)
    assert reply.text == "May I run harbour pay dues with euros: 20, for boats: Otter, Heron?"
