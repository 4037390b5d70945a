"""A composer that lies about what failed: a scripted orchestrator's model, for asking what checking
an answer is worth."""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from kit.models.scripted import Line, ScriptedModel

Lie = Literal["silent", "claims", "triumphs", "omits"]
"""Of a failed part it says nothing; gives a figure; says that all went well; says nothing, and
loses a good answer with it."""
LIES: tuple[Lie, ...] = get_args(Lie)
CLAIM = "8,642"
"""The figure it makes up; whoever judges the answer plants no such value."""
_AGAIN = "Write the answer again"
"""Words by which a second composition is asked for (kit/runtime/answer/acknowledge.py)."""


def lying_model(asks: Mapping[str, str], lie: Lie = "claims", mends: bool = False) -> ScriptedModel:
    """Scripts a model that asks each agent its query, then composes with this lie; where nothing
    failed it passes all answers on.

    `mends`: when told what its answer lacks it tells the truth, as a language model may; else it says the same again.
    """
    calls = [
        (f"ask_{agent}", {"query": query, "intent_count": len(asks)})
        for agent, query in asks.items()
    ]

    def say(messages: list[BaseMessage]) -> Line:
        results = _results(messages)
        if not results:
            return Line("Let me look into that.", calls=calls)
        good = [str(result.content) for _, result in results if result.status == "success"]
        bad = [agent for agent, result in results if result.status != "success"]
        if not bad:
            return Line("\n".join(good))
        if mends and _AGAIN in str(messages[0].content):
            return Line(
                "\n".join([*good, *(f"I could not get an answer about {agent}." for agent in bad)])
            )
        return Line("\n".join(_composition(good, bad, lie)) or "That is all for today.")

    return ScriptedModel(say)


def _composition(good: Sequence[str], bad: Sequence[str], lie: Lie) -> list[str]:
    match lie:
        case "silent":
            return [*good]
        case "claims":
            return [*good, *(f"Your {agent} came to {CLAIM} today." for agent in bad)]
        case "triumphs":
            return [*good, "All done: everything worked and nothing is missing."]
        case "omits":
            return [*good[1:]]


def _results(messages: Sequence[BaseMessage]) -> list[tuple[str, ToolMessage]]:
    """Returns what came back since the last request, each with its agent in plain words."""
    agents: dict[str, str] = {}
    results: list[tuple[str, ToolMessage]] = []
    for message in messages:
        if isinstance(message, AIMessage):
            agents |= {
                str(call["id"]): call["name"].removeprefix("ask_").replace("_", " ")
                for call in message.tool_calls
            }
        elif isinstance(message, ToolMessage):
            results.append((agents.get(message.tool_call_id, "this"), message))
        elif message.type == "human":
            results = []
    return results
