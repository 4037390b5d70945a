"""A bridge to whatever stands under a name: the framework is recognised by the object itself."""

from pathlib import Path

from kit.bridges.a2a import A2ABridge, is_card_address
from kit.bridges.function import function_bridge
from kit.bridges.http import HttpBridge, is_address
from kit.bridges.langgraph import graph_bridge
from kit.bridges.openai_agents import openai_agent_bridge
from kit.bridges.part import Bridge, Recogniser
from kit.bridges.pydantic_ai import pydantic_agent_bridge
from kit.core.errors import CodeError
from kit.tools.loading import load_reference

_RECOGNISERS: tuple[Recogniser, ...] = (
    graph_bridge,
    pydantic_agent_bridge,
    openai_agent_bridge,
    function_bridge,
)
"""Frameworks first: a graph or an agent of theirs may be callable as well."""


def load_bridge(reference: str, folder: Path) -> Bridge:
    """Loads `./file.py:NAME` or `package.module:NAME` and makes a bridge of what it finds there;
    an address is asked over HTTP, that of an agent's card over A2A.

    Raises CodeError, which says what can stand there.
    """
    if is_address(reference) and is_card_address(reference):
        return A2ABridge.at(reference)
    if is_address(reference):
        return HttpBridge.at(reference)
    return bridge_of(load_reference(reference, folder), reference)


def bridge_of(value: object, source: str) -> Bridge:
    """A bridge to an object; `source` says in errors where it came from. Raises CodeError."""
    for recognise in _RECOGNISERS:
        bridge = recognise(value, source)
        if bridge is not None:
            return bridge
    raise CodeError(
        f"{source} is of type {type(value).__name__}, which nobody here knows how to ask; wrap it: "
        "`async def answer(message): ...`"
    )
