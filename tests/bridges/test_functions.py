"""Functions of all shapes as systems."""

import pytest

from kit.bridges.part import Piece, Question, Reported
from kit.bridges.recognise import bridge_of
from kit.core.context import Principal
from kit.core.errors import CodeError

ALICE = Principal(tenant_id="t", user_id="alice")


async def parts_of(value: object, text: str = "hello"):
    bridge = bridge_of(value, "mine.py:answer")
    return [part async for part in bridge.ask(Question(text, ALICE))]


async def test_functions_of_all_shapes_are_asked_with_the_text():
    def plain(message):
        return f"plain {message}"

    async def later(message):
        return Reported(f"later {message}", calls=["a"])

    async def for_somebody(message, principal):
        return f"{principal.user_id} says {message}"

    async def in_pieces(message):
        yield "in "
        yield message

    class Desk:
        async def __call__(self, message):
            return f"desk {message}"

    assert await parts_of(plain) == [Reported("plain hello")]
    assert await parts_of(later) == [Reported("later hello", calls=["a"])]
    assert await parts_of(for_somebody) == [Reported("alice says hello")]
    assert await parts_of(in_pieces) == [Piece("in "), Piece("hello")]
    assert await parts_of(Desk()) == [Reported("desk hello")]


async def test_what_is_no_answer_is_said_to_be_none():
    async def number(message):
        return 42

    with pytest.raises(
        TypeError, match=r"mine\.py:answer returned a value of type int; return text"
    ):
        await parts_of(number)


def test_what_cannot_be_asked_is_refused_before_it_is_asked():
    with pytest.raises(CodeError, match="takes 3 arguments"):
        bridge_of(lambda one, two, three: "", "mine.py:answer")
