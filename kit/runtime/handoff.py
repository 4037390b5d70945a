"""A sub-agent as a tool: the schema that its caller's model sees, the way back from a call, and what crosses.

Only the declared fields cross, within their limits.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from langchain_core.messages.tool import ToolCall

from kit.core.card import AgentCard, Handoff, HandoffField
from kit.core.context import InheritedContext
from kit.core.outcome import AgentCall, Answer, Failure
from kit.core.value import map_leaves
from kit.models.message import CHARACTERS

PLACEHOLDER = "[personal]"
"""What stands in a trace for a personal value."""
SHORT = 3
"""Personal values below this many characters are hidden only where they stand alone: `5` would hide every five."""
T = TypeVar("T")
_NONE = Handoff()
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


@dataclass(frozen=True, slots=True)
class HandoffResult:
    """A call as the sub-agent gets it, and as the trace shows it."""

    call: AgentCall
    trace_fields: Mapping[str, Any]
    """The fields, personal ones redacted."""
    private: tuple[str, ...] = ()
    """Personal values that crossed; no later event of the turn may show them."""
    limited: tuple[str, ...] = ()
    """What was cut or left out."""
    breach: str | None = None
    """Why the call cannot be made: a required field is missing, wrong or over its limit."""


def apply_handoff(
    call: AgentCall, card: AgentCard | None, inherited: InheritedContext
) -> HandoffResult:
    """Returns the call with only what the card's hand-off lets through, whatever a prompt asked
    for.

    Undeclared fields stay behind. An optional value that is wrong is left out, one that is too long
    is cut at its limit; both are recorded. A required one that is missing, wrong or too long is a
    breach: a shortened answer would be a wrong one. The query is cut, never refused.
    """
    handoff = _NONE if card is None else card.handoff
    if not (handoff.fields or handoff.closed or handoff.max_query_tokens or call.fields):
        return HandoffResult(call, call.fields)
    notes: list[str] = []
    for name in call.fields:
        if name not in handoff.fields:
            notes.append(f"{name} is not declared: left out")
    fields: dict[str, Any] = {}
    trace_fields: dict[str, Any] = {}
    private: dict[str, None] = {}
    breach: str | None = None
    for name, field in handoff.fields.items():
        if field.source in ("locale", "location"):
            value = getattr(inherited, field.source)
        else:
            value = call.fields.get(name)
        value, note = _fit(value, field)
        # A shortened answer to a required field would be a wrong one.
        if note and field.required:
            breach = breach or f"{name} {note}"
        elif note and name in call.fields:
            notes.append(f"{name} {note}")
        if value is None:
            continue
        fields[name] = value
        trace_fields[name] = PLACEHOLDER if field.pii else value
        if field.pii:
            private |= dict.fromkeys(texts_of(value))
    query = _query(call.query, handoff.max_query_tokens, notes)
    prior_context = call.prior_context
    if handoff.closed and prior_context is not None:
        prior_context = None
        notes.append("prior_context does not cross a closed hand-off: left out")
    return HandoffResult(
        call.replace(fields=fields, query=query, prior_context=prior_context),
        trace_fields,
        tuple(private),
        tuple(notes),
        breach,
    )


def private_fields(cards: Mapping[str, AgentCard]) -> dict[str, frozenset[str]]:
    """Tool name -> its personal fields, for the sub-agents that have any."""
    personal: dict[str, frozenset[str]] = {}
    for tool, card in cards.items():
        names = [name for name, field in card.handoff.fields.items() if field.pii]
        if names:
            personal[tool] = frozenset(names)
    return personal


def hide(value: T, private: Collection[str]) -> T:
    """Returns a copy of a text, list or mapping for the trace, without the personal values."""
    # The longest first: a short value may stand inside a long one.
    secrets = sorted(private, key=len, reverse=True)

    def redact(leaf: Any) -> Any:
        if not isinstance(leaf, str):
            if leaf is not None and not isinstance(leaf, bool) and str(leaf) in private:
                return PLACEHOLDER
            return leaf
        for secret in secrets:
            if leaf == secret or len(secret) >= SHORT:
                leaf = leaf.replace(secret, PLACEHOLDER)
        return leaf

    return cast(T, map_leaves(value, redact))


def hide_words(text: str, private: Collection[str]) -> str:
    """Returns a prompt for the trace: personal values too short to be hidden everywhere are hidden
    where they are a word."""
    return "".join(hide(re.split(r"(\W+)", hide(text, private)), private))


def hide_outcome(outcome: Answer | Failure, private: Collection[str]) -> Answer | Failure:
    """Returns a copy of the outcome for the trace, without the personal values."""
    return type(outcome).model_validate(hide(outcome.model_dump(), private))


def _fit(value: Any, field: HandoffField) -> tuple[Any, str | None]:
    """The value within the field's limits, and what was wrong with it."""
    if value is None:
        return None, "is missing"
    if not _of_type(value, field.type):
        return None, f"is no {field.type}: left out"
    items = _items(value)
    if field.enum and any(item not in field.enum for item in items):
        return None, "is none of the values it may have: left out"
    limit = field.max_items
    unit = "items"
    measured: Any = items
    if isinstance(value, str):
        limit = field.longest
        unit = "characters"
        measured = value
    if limit is None or len(measured) <= limit:
        return value, None
    shortened = None if field.required else measured[:limit]
    return shortened, f"has {len(measured)} {unit}: cut at {limit}"


def _of_type(value: Any, kind: str) -> bool:
    if kind == "array":
        return isinstance(value, list) and all(isinstance(item, str) for item in _items(value))
    # a bool is an int to Python, and no number to a card
    return isinstance(value, _TYPES[kind]) and isinstance(value, bool) == (kind == "boolean")


def _query(query: str, limit: int | None, notes: list[str]) -> str:
    if limit is None or len(query) <= limit * CHARACTERS:
        return query
    notes.append(f"query has {len(query)} characters: cut at {limit * CHARACTERS}")
    return query[: limit * CHARACTERS]


def texts_of(value: Any) -> list[str]:
    """Returns the texts by which a value could be read in an event."""
    texts: list[str] = []
    for item in _items(value):
        # a yes or a no is nobody's secret, and would hide every "True" of the trace
        if not isinstance(item, bool) and str(item).strip():
            texts.append(str(item))
    return texts


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value if isinstance(value, list) else [value])


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
    from_model = {name: field for name, field in handoff.fields.items() if field.source == "model"}
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
    return function_schema(card.tool_name, card.description, parameters)


def function_schema(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a function as models are told of it; `parameters` is the JSON schema of its arguments."""
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


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
    return function_schema(ROUTE, description, parameters)


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
    if isinstance(query, str):
        query = query.strip()
    else:
        query = ""
    prior = args.get("prior_context")
    if isinstance(prior, str) and prior.strip():
        prior = prior[:LONGEST_CONTEXT]
    else:
        prior = None
    agent = call["name"].removeprefix("ask_")
    fields: dict[str, Any] = {}
    if card is not None:
        agent = card.id
        for name, field in card.handoff.fields.items():
            if name in args and field.source == "model":
                fields[name] = args[name]
    return AgentCall(
        call_id=call_id,
        agent=agent,
        query=query or message,
        prior_context=prior,
        intent_count=_whole_number(args.get("intent_count")),
        fields=fields,
    )


def _whole_number(value: object) -> int | None:
    """Returns a count however a model wrote it: 2, 2.0 or "2"; None for what is no whole number."""
    if type(value) is int:
        return value
    if not isinstance(value, str | float):
        return None
    try:
        number = float(value)
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
    return {name: value for name, value in schema.items() if value is not None}
