"""What is built without validation is what validation would have made, and a forgotten field is refused at once."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import pytest
from langchain_core.tools import StructuredTool
from pydantic import BaseModel

from kit.core.card import AgentCard
from kit.core.event import Event
from kit.core.model import ModelSpec
from kit.core.outcome import AgentCall, Outcome
from kit.core.record import TurnRecord
from kit.core.trace import Trace
from kit.core.transcript import transcript
from kit.core.value import builder
from kit.models.scripted import Line, ScriptedModel
from kit.patterns.agents_as_tools import run_mediated
from kit.runtime.context import RunContext
from kit.runtime.dispatch import fan_out
from kit.runtime.pattern import Pattern
from kit.runtime.turn import run_turn
from kit.sinks.recorder import Recorder
from tests.house.test_repository import sources
from tests.kits import ALICE, answering, asks, failing, small_kit, stitched


def builders() -> Iterator[tuple[str, type[BaseModel]]]:
    """Every module that makes a builder, with the class it is for, read from the code."""
    for path, text in sources("kit"):
        for node in ast.walk(ast.parse(text)) if "builder(" in text else ():
            match node:
                case ast.Call(func=ast.Name("builder"), args=[ast.Name(name)]):
                    module = path.removesuffix(".py").replace("/", ".")
                    yield module, getattr(import_module(module), name)
                case _:
                    pass


EVERY = sorted(set(builders()), key=str)
"""Call sites are typed: a builder has its class' signature, which pyright reads at each of them."""


def test_a_forgotten_an_unknown_or_a_shared_field_is_refused_by_name():
    build: Any = builder(AgentCall)
    for given, name in (
        ({"call_id": "1", "agent": "a"}, "query"),
        ({"call_id": "1", "agent": "a", "query": "q", "colour": "red"}, "colour"),
        # A default that can change is never shared.
        ({"call_id": "1", "agent": "a", "query": "q"}, "fields"),
    ):
        with pytest.raises(TypeError, match=f"'{name}'"):
            build(**given)
    with pytest.raises(TypeError, match="ModelSpec"):
        builder(ModelSpec)  # it checks more than types


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


@dataclass
class Watcher:
    """A sink, and a pattern that plays the default one: notes the values that a turn makes beside its events."""

    name: str = "watcher"
    values: list[Any] = field(default_factory=list[Any])

    def turn_ended(self, turn: TurnRecord, trace: Trace, events: Sequence[Event]) -> None:
        self.values.append(turn)

    async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
        outcome = await run_mediated(call, ctx)
        self.values += [call, ctx.inherited, ctx.turn.dynamic, outcome, await fan_out((), ctx)]
        return outcome

    def close(self) -> None: ...


async def test_whatever_a_turn_builds_is_what_validation_would_have_made():
    tool = StructuredTool.from_function(coroutine=looked_up, name="look")
    looking = ScriptedModel(Line(calls=[("look", {})]), "A is known.")
    sub_agents = {"a": looking, "b": failing(OSError("x")), "c": answering("never asked")}
    card = AgentCard(id="a", description="Looks.", model="offline", tools=("look",))
    lead = ScriptedModel(asks("a", "b", "c", text=""), stitched, "And once more.")
    kit, watcher = small_kit(lead, sub_agents, {"look": tool}, [card], cap=2), Watcher()
    kit.recorder = Recorder((watcher,))
    kinds = set[type[BaseModel]]()
    for message in ("three things", "one more thing"):
        reply = await run_turn(message, ALICE, kit, Pattern("mediated", watcher.run))
        parts = (
            reply.events,
            reply.outcomes,
            reply.routing,
            reply.usage,
            transcript(reply.events),
            watcher.values,
        )
        built = [value for part in parts for value in values(part)]
        built += [*kit.store.history(ALICE.key), *kit.store.history(ALICE.key, "a")]
        for value in built:
            fresh = type(value).model_validate(vars(value), strict=True)
            assert (
                value == fresh
                and hash_of(value) == hash_of(fresh)
                and value.model_dump() == fresh.model_dump()
            ), value
        kinds |= {type(value) for value in built}
    assert {kind for _, kind in EVERY} <= kinds, "no builder goes unchecked"


async def looked_up() -> str:
    """Looks."""
    return "seen"


def hash_of(value: BaseModel) -> int | None:
    try:
        return hash(value)
    except TypeError:  # a mapping in it
        return None
