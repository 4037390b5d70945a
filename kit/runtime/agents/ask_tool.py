"""A sub-agent as a tool: the schema an orchestrator's model sees, and the way back from its call."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages.tool import ToolCall

from kit.core.card import AgentCard, HandoffField
from kit.core.outcome import AgentCall
from kit.models.usage import CHARACTERS

ROUTE = "submit_route"
"""The tool by which a classifier answers."""
LONGEST_CONTEXT = 800
"""Characters of a prior_context, whoever wrote it; more are cut off."""
_QUERY = "The user's exact words for this part, verbatim: do not rephrase, expand or add context."
_COUNT = "How many distinct intents the user's whole message holds."
_PRIOR = (
    "When the user switches here from another topic: names, ids and goals from earlier "
    "turns that matter. Otherwise leave out."
)


def ask_tool(card: AgentCard) -> dict[str, Any]:
    """Returns the function schema of `ask_<id>`; its description is the card's, unchanged."""
    handoff = card.handoff
    from_model: dict[str, HandoffField] = {}
    for name, field in handoff.fields.items():
        if field.source == "model":
            from_model[name] = field
    query: dict[str, Any] = {"type": "string", "description": _QUERY}
    if handoff.max_query_tokens:
        query["maxLength"] = handoff.max_query_tokens * CHARACTERS
    properties: dict[str, Any] = {
        "query": query,
        "intent_count": {"type": "integer", "minimum": 1, "description": _COUNT},
    }
    if not handoff.closed:
        properties["prior_context"] = {"type": "string", "description": _PRIOR}
    properties |= {name: field_schema(field) for name, field in from_model.items()}
    required = [
        "query",
        "intent_count",
        *(name for name, field in from_model.items() if field.required),
    ]
    parameters = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "function",
        "function": {
            "name": card.tool_name,
            "description": card.description,
            "parameters": parameters,
        },
    }


def route_tool(labels: Sequence[str]) -> dict[str, Any]:
    """Returns the function schema of a classifier, its labels in the order in which a gateway asks their agents."""
    label_list = {
        "type": "array",
        "items": {"type": "string", "enum": list(labels)},
        "description": "In the order listed here.",
    }
    query = {
        "type": "string",
        "description": "The user's exact words for the first of the labels, and nothing of the others.",
    }
    parameters = {
        "type": "object",
        "properties": {"labels": label_list, "query": query},
        "required": ["labels", "query"],
    }
    description = "Every label the latest message is about; none when it fits no label."
    return {
        "type": "function",
        "function": {"name": ROUTE, "description": description, "parameters": parameters},
    }


def in_sequence(agents: Sequence[str], support: str | None) -> list[str]:
    """Returns the agents in the order in which a gateway asks them: support first, then the others
    as the deck lists them."""
    # False sorts before True, and the sort keeps the deck's order.
    return sorted(agents, key=lambda agent: agent != support)


def read_call(call: ToolCall, card: AgentCard | None, call_id: str, message: str) -> AgentCall:
    """Returns the agent call that a model's tool call stands for. Undeclared arguments are left
    out; a missing query becomes the message."""
    args: Mapping[str, Any] = call["args"]
    query = args.get("query")
    prior = args.get("prior_context")
    if card is not None:
        declared = card.handoff.fields.items()
    else:
        declared = ()
    fields: dict[str, Any] = {}
    for name, field in declared:
        if name in args and field.source == "model":
            fields[name] = args[name]
    return AgentCall(
        call_id=call_id,
        agent=card.id if card is not None else call["name"].removeprefix("ask_"),
        query=query.strip() if isinstance(query, str) and query.strip() else message,
        prior_context=prior[:LONGEST_CONTEXT] if isinstance(prior, str) and prior.strip() else None,
        intent_count=_whole_number(args.get("intent_count")),
        fields=fields,
    )


def _whole_number(value: object) -> int | None:
    """Returns a count however a model wrote it: 2, 2.0 or "2"; None for what is no whole number."""
    if type(value) is int:
        return value
    try:
        if isinstance(value, str | float):
            number = float(value)
        else:
            number = 0.5
    except ValueError:
        return None
    if number.is_integer():
        return int(number)
    return None


def field_schema(field: HandoffField) -> dict[str, Any]:
    """Returns the JSON schema by which a model fills a field."""
    is_array = field.type == "array"
    schema: dict[str, Any] = {
        "type": field.type,
        "description": field.description,
        "enum": list(field.enum) if field.enum else None,
        "maxLength": field.longest or None,
        "items": {"type": "string"} if is_array else None,
        "maxItems": (field.max_items or None) if is_array else None,
    }
    mapping: dict[str, Any] = {}
    for name, value in schema.items():
        if value is not None:
            mapping[name] = value
    return mapping
