"""What is built without validation is what validation would have made, and a forgotten field is refused at once."""

import ast
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from pydantic import BaseModel

from kit.core.model import ModelSpec
from kit.core.outcome import AgentCall
from kit.core.record import Message
from kit.core.value import builder
from kit.models.scripted import ScriptedModel
from kit.runtime.turn import run_turn
from tests.kits import ALICE, answering, asks, failing, small_kit, stitched
from tests.test_repository import sources


def builders() -> Iterator[tuple[str, type[BaseModel]]]:
    """Every module that makes a builder, with the class it is for, read from the code."""
    for path, text in sources("kit"):
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Call(func=ast.Name("builder"), args=[ast.Name(name)]):
                    module = path.removesuffix(".py").replace("/", ".")
                    yield module, getattr(import_module(module), name)
                case _:
                    pass


EVERY = sorted(set(builders()), key=str)
"""Call sites are typed: a builder has its class' signature, which pyright reads at each of them."""
each_builder = pytest.mark.parametrize(("module", "kind"), EVERY, ids=[f"{module}-{kind.__name__}" for module, kind in EVERY])


@each_builder
def test_a_forgotten_or_unknown_field_is_refused_by_name(module: str, kind: type[BaseModel]) -> None:
    build: Any = builder(kind)
    required = [name for name, field in kind.model_fields.items() if field.is_required()]
    whole = dict.fromkeys(required, "")
    for name in required:
        with pytest.raises(TypeError, match=f"'{name}'"):
            build(**{key: value for key, value in whole.items() if key != name})
    with pytest.raises(TypeError, match="'colour'"):
        build(**whole, colour="red")


def test_builders_are_found() -> None:
    assert len(EVERY) >= 12 and {"Event", "ModelEnded", "Usage", "Message"} <= {kind.__name__ for _, kind in EVERY}


def values(value: Any) -> Iterator[BaseModel]:
    """A value and all values inside it."""
    match value:
        case BaseModel():
            yield value
            for inner in vars(value).values():
                yield from values(inner)
        case tuple() | list():
            for inner in value:
                yield from values(inner)
        case _:
            pass


async def test_whatever_a_turn_builds_is_what_validation_would_have_made() -> None:
    sub_agents = {"a": answering("A is known."), "b": failing(OSError("x")), "c": answering("never asked")}
    kit = small_kit(ScriptedModel(asks("a", "b", "c"), stitched, "And once more."), sub_agents, cap=2)
    kinds = set[type[BaseModel]]()
    for message in ("three things", "one more thing"):
        reply = await run_turn(message, ALICE, kit)
        built = [value for part in (reply.events, reply.outcomes, reply.routing, reply.usage) for value in values(part)]
        built += [*kit.store.history(ALICE.id), *kit.store.history(ALICE.id, "a")]
        for value in built:
            fresh = type(value).model_validate(vars(value), strict=True)
            assert value == fresh and hash_of(value) == hash_of(fresh) and value.model_dump() == fresh.model_dump(), value
        kinds |= {type(value) for value in built}
    assert {kind for _, kind in EVERY} <= kinds, "no builder goes unchecked"


def hash_of(value: BaseModel) -> int | None:
    try:
        return hash(value)
    except TypeError:  # a mapping in it
        return None


def test_a_built_value_is_copied_replaced_and_frozen_like_any_other() -> None:
    line = builder(Message)(turn_id="t", role="user", text="hi")
    assert line.replace(text="ho") == line.model_copy(update={"text": "ho"}) == Message(turn_id="t", role="user", text="ho")
    assert line.text == "hi"
    with pytest.raises(ValueError, match="frozen"):
        line.text = "ho"
    with pytest.raises(TypeError, match="'colour'"):
        line.replace(colour="red")


def test_a_default_that_can_change_is_never_shared() -> None:
    build: Any = builder(AgentCall)
    with pytest.raises(TypeError, match="'fields'"):
        build(call_id="1", agent="a", query="q")


def test_a_class_that_checks_more_than_types_has_no_builder() -> None:
    with pytest.raises(TypeError, match="ModelSpec"):
        builder(ModelSpec)
