"""A tool that was put on a card later is watched: each of its calls is logged for thirty days."""

import datetime
import logging
from collections.abc import Mapping

from langchain_core.tools import BaseTool

from kit.core.card import AgentCard

log = logging.getLogger("kit.whitelist")
WATCHED_DAYS = 30


def new_tools(card: AgentCard, tools: Mapping[str, BaseTool]) -> dict[str, datetime.date]:
    """Returns tool name -> the day the tool was put on the card, for tools granted later; `tools` by id, as bound."""
    return {tool.name: card.tool_grants[name].since for name, tool in tools.items() if name in card.tool_grants}


def note(agent: str, tool: str, since: datetime.date, turn_id: str, today: str) -> None:
    """Logs a call at INFO while the grant is young; without a readable date of today it always does."""
    try:
        young = (datetime.date.fromisoformat(today) - since).days < WATCHED_DAYS
    except ValueError:
        young = True
    if young:
        log.info("%s called %s, on its card since %s (turn %s)", agent, tool, since, turn_id)
