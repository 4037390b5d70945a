"""The embedded worlds as tests want them: their tools over clients of a test's own, and one context
service over both."""

from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from kit.stores.turn_store import TurnStore
from kit.tools.enricher import Enrich
from kit.tools.feedback import FEEDBACK, feedback_tool
from kit.tools.tool import ConfiguredTool
from kit.worlds.consumer import enrichers, tools
from kit.worlds.consumer.support import Episodes, Support
from kit.worlds.consumer.world import World
from kit.worlds.manga import enrichers as manga_enrichers
from kit.worlds.manga import tools as manga_tools
from kit.worlds.manga.library import Library
from kit.worlds.service import context_service

MANGA = Path(__file__).resolve().parent.parent / "data" / "manga"
TOOL_IDS = frozenset((*tools.TOOL_IDS, *manga_tools.TOOL_IDS, FEEDBACK))


def toolbox(
    enrich: Enrich,
    support: Support,
    feedback: TurnStore | None = None,
    episodes: Episodes | None = None,
    *,
    key: str | None = None,
) -> Any:
    """Tool id -> the tool, of both worlds; `feedback` and `episodes` are a store."""
    return {
        **tools.toolbox(enrich, support, episodes, key=key),
        **manga_tools.toolbox(enrich, key=key),
        FEEDBACK: ConfiguredTool(lambda _: feedback_tool(FEEDBACK, feedback)),
    }


def context_app(world: World, **options: Any) -> Starlette:
    """The context service over a consumer world and the manga library."""
    catalogues = (enrichers.catalogue(world), manga_enrichers.catalogue(Library(MANGA)))
    return context_service.context_app(*catalogues, **options)
