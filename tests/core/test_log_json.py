"""The log of a turn is the same JSON whoever writes it: orjson, or pydantic for what orjson refuses."""

import datetime
import json
from dataclasses import dataclass
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, TypeAdapter
from pydantic_core import PydanticSerializationError

from kit.core.bodies.speech import Component
from kit.core.event import Event
from kit.core.value import Value, builder
from kit.models.scripted import ScriptedModel
from kit.runtime.turn import run_turn
from kit.stores import rows
from kit.stores.rows import log_of
from tests.kits import ALICE, answering, asks, failing, small_kit, stitched

PYDANTIC = TypeAdapter(list[Event])


def with_payload(odd: Any) -> list[Event]:
    """An event whose payload nobody checked, as in a log of an earlier version."""
    body = builder(Component)(
        agent="shop", type="offer", payload={"first": 1, "odd": odd, "sku": "B1"}
    )
    return [builder(Event)(seq=0, at=0.1, turn_id="t", span_id="s", body=body)]


def pairs(text: str) -> Any:
    """A JSON text as nested lists, so that the order of keys counts and NaN would be seen."""
    return json.loads(text, object_pairs_hook=list)


class Colour(Enum):
    RED = "red"


class Word(StrEnum):
    ONE = "one"


class Point(NamedTuple):
    x: int


@dataclass
class Offer:
    price: float
    _hidden: int = 1


class Priced(Value):
    price: float
    parts: tuple[str, ...] = ("a",)


class Foreign(BaseModel):
    when: datetime.date


UTC = datetime.UTC
ODD: dict[str, Any] = {
    "nan": float("nan"),
    "floats": [1e16, 1e-7, 0.1, -0.0, 5e-324, 1.7976931348623157e308],
    "a moment": datetime.datetime(2026, 11, 1, 12, 0, 0, 1, UTC),
    "enums": [Colour.RED, Word.ONE],
    "a named tuple": Point(1),
    "a dataclass": Offer(1.5),
    "a value": Priced(price=1),
    "another model": Foreign(when=datetime.date(2026, 11, 1)),
    "numbers as keys": {1: "one", 2.5: "two"},
    "a big number": [2**63, -(2**63), 2**64, 10**30],
    "a frozen set": frozenset({"a"}),
    "a proxy": MappingProxyType({"b": 1, "a": 2}),
    "signs": 'ü \u2028 \x00 \x7f " \\ / <b> \U0001f600',
    "deeper": json.loads("[" * 253 + "]" * 253),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_value_is_worded_as_pydantic_words_it(name: str):
    events = with_payload(ODD[name])
    try:
        expected = PYDANTIC.dump_json(events, fallback=str).decode()
    except PydanticSerializationError:
        expected = None
    assert expected is None or pairs(log_of(events).decode()) == pairs(expected)


async def test_a_whole_turn_is_written_without_pydantic_and_reads_the_same(
    monkeypatch: pytest.MonkeyPatch,
):
    sub_agents = {"a": answering("A is known."), "b": failing(OSError("x"))}
    kit = small_kit(ScriptedModel(asks("a", "b"), stitched), sub_agents)
    events = (await run_turn("two things", ALICE, kit)).events
    expected = PYDANTIC.dump_json(list(events), fallback=str).decode()
    monkeypatch.setattr(rows, "_log", None)
    assert pairs(log_of(events).decode()) == pairs(expected) and len(events) > 12
    assert PYDANTIC.validate_json(log_of(events).decode()) == list(events)
