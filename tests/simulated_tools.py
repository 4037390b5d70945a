"""Tools without an upstream, for runs of many turns: each gives the figure planted for its owner
and the case at hand."""

import asyncio
from collections.abc import Iterable
from typing import Any

from langchain_core.tools import BaseTool

from kit.core.card import AgentCard
from kit.models.simulated import canary_figure, case_at_hand
from kit.tools.enricher import structured
from kit.tools.tool import ToolResult

QUERY = {"query": {"type": "string", "description": "What is wanted."}}


def simulated_tools(cards: Iterable[AgentCard], seconds: float = 0.0) -> dict[str, BaseTool]:
    """A tool for every tool id the cards name; it answers after `seconds`, and says that it is simulated.

    What a tool gives is the figure of the first card that holds it, so that an answer can be checked against the case.
    """
    owners: dict[str, str] = {}
    for card in cards:
        for tool in card.tools:
            owners.setdefault(tool, card.id)
    return {tool: simulated_tool(tool, owner, seconds) for tool, owner in owners.items()}


def simulated_tool(name: str, owner: str, seconds: float = 0.0) -> BaseTool:
    """One such tool."""

    async def call(**_: Any) -> tuple[str, ToolResult]:
        if seconds:
            await asyncio.sleep(seconds)
        text = (
            f"Simulated data of {owner.replace('_', ' ')}: {canary_figure(case_at_hand(), owner)}."
        )
        return text, ToolResult(text=text)

    return structured(name, f"Simulated: looks up what {owner} knows.", QUERY, (), call)
