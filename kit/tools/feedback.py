"""llm_feedback: what a user says about an answer in words, stored where the app's thumbs are stored."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from kit.core.record import Feedback
from kit.tools.enricher import fit_arguments, structured
from kit.tools.tool import Toolbox, ToolContext, ToolResult, tool_context
from kit.tools.tool_factory import ToolSetup, tool_factory

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from kit.stores.turn_store import TurnStore

FEEDBACK = "llm_feedback"
DESCRIPTION = (
    "Store what the user thinks of an answer, when the user praises it or complains "
    "about it. Not for questions or requests."
)
PROPERTIES: dict[str, dict[str, Any]] = {
    "verdict": {
        "type": "string",
        "enum": ["good", "bad"],
        "description": "good for praise, bad for a complaint.",
    },
    "note": {"type": "string", "description": "What the user said about it, in the user's words."},
}
# What small models write in place of the one word that the schema allows them for a complaint.
_BAD = frozenset({"bad", "0", "down", "negative", "false"})


def feedback_tool(name: str, store: "TurnStore | None") -> "BaseTool":
    """The tool; without a place to keep feedback it says so."""

    async def call(**arguments: Any) -> tuple[str, ToolResult]:
        values = fit_arguments(arguments, PROPERTIES)
        if store is None:
            result = ToolResult(
                text="Feedback cannot be stored right now.",
                fault="unavailable",
                detail="no feedback store",
            )
        else:
            verdict = values.get("verdict", "good").strip().lower()
            feedback = Feedback(
                turn_id=_rated_turn(store, tool_context()),
                score=0 if verdict in _BAD else 1,
                note=values.get("note", "")[:500],
            )
            store.give_feedback(feedback)
            result = ToolResult(text="The feedback is stored. Thank the user briefly.")
        return result.text, result

    return structured(name, DESCRIPTION, PROPERTIES, ("verdict",), call)


def _rated_turn(store: "TurnStore", context: ToolContext) -> str:
    """The turn before this one; this one when it is the first."""
    principal = context.inherited.principal
    session = context.inherited.episode_id
    recent = store.turns(session, principal.tenant_id, principal.user_id, limit=2)
    for turn in recent:
        if turn.id != context.turn_id:
            return turn.id
    return context.turn_id


@tool_factory(FEEDBACK)
@asynccontextmanager
async def TOOLS(setup: ToolSetup) -> AsyncGenerator[Toolbox]:
    """What deck.yaml names as `kit.tools.feedback:TOOLS`: feedback goes to the kit's own store."""
    yield {FEEDBACK: feedback_tool(FEEDBACK, setup.store)}
