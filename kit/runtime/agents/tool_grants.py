"""A tool that was put on a card later is watched: for thirty days each of its calls says so in the trace."""

import datetime
from collections.abc import Mapping

from langchain_core.tools import BaseTool

from kit.core.card import AgentCard

WATCHED_DAYS = 30


def new_tools(card: AgentCard, tools: Mapping[str, BaseTool]) -> dict[str, datetime.date]:
    """Returns tool name -> the day the tool was put on the card, for tools granted later; `tools` by id, as bound."""
    mapping: dict[str, datetime.date] = {}
    for name, tool in tools.items():
        if name in card.tool_grants:
            mapping[tool.name] = card.tool_grants[name].since
    return mapping


def watched_since(since: datetime.date | None, today: str) -> str | None:
    """Returns the day of a grant while it is young, else None; without a readable date of today it stays young."""
    try:
        young = (
            since is not None and (datetime.date.fromisoformat(today) - since).days < WATCHED_DAYS
        )
    except ValueError:
        young = True
    if young:
        return str(since)
    return None
