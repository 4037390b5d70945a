"""What a function returns, and what of it a model reads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from pydantic import BaseModel

from kit import open_kit
from kit.core.bodies.call import ToolEnded
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.handle import Reply
from kit.tools.tool import LONGEST_RESULT
from tests.kits import ALICE, OFFLINE, bodies, desk_deck, desk_models, repeats


@dataclass
class Point:
    name: str
    value: float


class Fare(BaseModel):
    city: str
    euros: int


def tool_of(value: object, *, is_async: bool) -> Callable[..., Any]:
    async def find() -> Any:
        """Finds it."""
        return value

    def find_now() -> Any:
        """Finds it."""
        return value

    find_now.__name__ = "find"
    return find if is_async else find_now


async def turn_with(value: object, *, is_async: bool) -> Reply:
    deck = desk_deck([tool_of(value, is_async=is_async)], "find")
    models = desk_models(Line("Let me look.", calls=[("find", {})]), repeats)
    async with open_kit(OFFLINE, deck=deck, models=models) as kit:
        return await kit.ask("Please find it.", ALICE)


FRAME = pd.DataFrame({f"c{number}": range(1000) for number in range(30)})


@pytest.mark.realtime
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("seven", "seven"),
        ({"a": [1, None]}, '{"a": [1, null]}'),
        (Point("x", 1.0), '{"name":"x","value":1.0}'),
        ([Fare(city="Leeds", euros=3)], '[{"city":"Leeds","euros":3}]'),
        ({"b", "a"}, "a\nb"),
        (np.array([1, 2]), "[1, 2]"),
        (np.float64(0.5), "0.5"),
        (pd.DataFrame({"a": [1, 2]}), 'rows 1 to 2 of 2\n[{"a":1},{"a":2}]'),
        (pd.Series([1], name="a"), 'rows 1 to 1 of 1\n[{"a":1}]'),
    ],
)
async def test_what_a_function_returns_reaches_its_model_as_json(value: object, text: str):
    reply = await turn_with(value, is_async=True)
    [ended] = bodies(reply, ToolEnded)
    assert (ended.result, ended.error) == (text, None)


@pytest.mark.realtime
async def test_of_a_long_frame_a_model_reads_the_first_rows_and_how_many_there_are():
    reply = await turn_with(FRAME, is_async=False)
    [ended] = bodies(reply, ToolEnded)
    assert ended.result.startswith('rows 1 to 50 of 1,000\n[{"c0":0,')
    assert ended.result.count('"c29"') == 50 and "..." not in ended.result


@pytest.mark.realtime
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"\x89PNX" * 9, "find() returned 36 bytes, which no model can read; return text"),
        ({"picture": b"\x89PNG"}, "of a file say what is in it"),
        ([object()], "find() returned a value of type list"),
        (Figure(), "find() returned a value of type Figure"),
    ],
)
async def test_bytes_figures_and_objects_are_refused_with_what_to_return(value: object, words: str):
    reply = await turn_with(value, is_async=False)
    [ended] = bodies(reply, ToolEnded)
    assert ended.error is not None and words in ended.error
    assert " at 0x" not in ended.result and "PN" not in ended.result and " at 0x" not in reply.text


@pytest.mark.realtime
async def test_a_text_of_megabytes_is_cut_and_its_model_is_told():
    deck = desk_deck([tool_of("x" * 3_000_000, is_async=True)], "find")
    models = desk_models(Line("Let me look.", calls=[("find", {})]), "Found.")
    async with open_kit(OFFLINE, deck=deck, models=models) as kit:
        reply = await kit.ask("Please find it.", ALICE)
    assert reply.status == "ok"
    desk = models["desk"]
    assert isinstance(desk, ScriptedModel)
    [read] = [message for message in desk.seen[-1] if message.type == "tool"]
    note = "[cut off: these are the first 100,000 of 3,000,000 characters; ask for less]"
    assert str(read.content) == "x" * LONGEST_RESULT + "\n" + note
