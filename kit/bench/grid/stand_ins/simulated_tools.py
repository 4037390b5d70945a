"""The tools of a deck with nothing behind them: a model sees the real names and schemas, and a call
waits a fixed time and says "simulated". So patterns can be compared in a tenth of the time that the
embedded services would take."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

from langchain_core.tools import BaseTool, StructuredTool

from kit.compose.deck import Deck
from kit.tools.deck_tools import DeckTools
from kit.tools.faults import with_faults
from kit.tools.tool import NO_LIMITS, ConfiguredTool, LimitedTool, Toolbox, ToolResult
from kit.tools.tool_factory import ToolSetup, tool_factory

SECONDS = 0.2
"""A call takes so long: an assumption."""


def with_simulated_tools(deck: Deck) -> Deck:
    """The deck with nothing behind the tools of its sub-agents; its own are opened for their names and schemas."""

    @tool_factory(*deck.tools.ids)
    @asynccontextmanager
    async def simulated(setup: ToolSetup) -> AsyncGenerator[Toolbox]:
        async with deck.tools.open(replace(setup, live=False)) as tools:
            yield simulate(tools, deck)

    return replace(deck, tools=DeckTools(dict.fromkeys(deck.tools.ids, simulated)))


def simulate(tools: Toolbox, deck: Deck) -> Toolbox:
    """The same tools, those of the deck's sub-agents with nothing behind them; the orchestrator's own stay as they are.

    A tool's faults are those of the first card that holds it, whoever calls.
    """
    owners: dict[str, str] = {}
    for card in deck.active_sub_agents(deck.cards[deck.settings.orchestrator]):
        for tool in card.tools:
            owners.setdefault(tool, card.id)
    return {
        **tools,
        **{
            tool: _without_service(tools[tool], owner)
            for tool, owner in owners.items()
            if tool in tools
        },
    }


def _without_service(entry: BaseTool | ConfiguredTool | LimitedTool, owner: str) -> ConfiguredTool:
    limits = getattr(entry, "limits", NO_LIMITS)

    def make(config: Mapping[str, Any]) -> BaseTool:
        tool = cast(
            BaseTool,
            entry(config) if isinstance(entry, ConfiguredTool) else getattr(entry, "tool", entry),
        )
        answer = ToolResult(text=f"Simulated finding about {owner.replace('_', ' ')}.")

        async def call(**_: Any) -> tuple[str, ToolResult]:
            await asyncio.sleep(SECONDS)
            result = with_faults(answer, owner)
            return result.text, result

        return StructuredTool(
            name=tool.name,
            description=tool.description,
            args_schema=tool.args_schema or tool.get_input_schema(),
            coroutine=call,
            response_format="content_and_artifact",
        )

    return ConfiguredTool(make, limits)
