"""A request to a model without tool calls: tools as text, history as plain turns, the answer bound to a JSON schema."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    merge_message_runs,
)

from kit.models.message import chosen_tool
from kit.models.offline.json_schema import without_references

Function = Mapping[str, Any]
"""The `function` part of a tool in OpenAI's form: name, description, parameters."""

MAX_CALLS = 8
"""Calls one schema-bound reply may hold; small models repeat themselves until something stops them."""
_RESULT = re.compile(r"^(?=[^\S\n]*Result of )", re.M | re.I)
_GRAMMAR = ("type", "enum", "const", "required")
"""Schema keywords that survive; llama.cpp refuses some patterns and long repetitions."""


def plain_request(
    messages: Sequence[BaseMessage],
    *,
    tools: Sequence[dict[str, Any]] = (),
    tool_choice: Any = None,
    **options: Any,
) -> tuple[list[BaseMessage], dict[str, Any], tuple[str, ...]]:
    """What the model is sent: messages in plain text, options, and the names it may call (none: no
    schema, plain text)."""
    functions, must_call = _choose_functions(tools, tool_choice)
    # After results the answer is prose: bound to the schema, small models call the same tool again.
    if not functions or (_after_results(messages) and not must_call):
        return _plain_messages(messages, ""), options, ()
    schema = {"name": "answer", "schema": answer_schema(functions, at_least=int(must_call))}
    bound_options = {**options, "response_format": {"type": "json_schema", "json_schema": schema}}
    names = tuple(function["name"] for function in functions)
    return _plain_messages(messages, _tool_prompt(functions)), bound_options, names


def answer_schema(functions: Sequence[Function], at_least: int = 0) -> dict[str, Any]:
    """The JSON Schema of `{"say", "calls"}` over these tools; tools with equal arguments share one branch."""
    branches: dict[str, tuple[list[str], dict[str, Any]]] = {}
    for function in functions:
        arguments = _simplify(without_references(_parameters(function)))
        branches.setdefault(json.dumps(arguments), ([], arguments))[0].append(function["name"])
    items: list[dict[str, Any]] = []
    for names, args in branches.values():
        items.append(_strict_object({"name": {"type": "string", "enum": names}, "arguments": args}))
    calls: dict[str, Any] = {
        "type": "array",
        "items": items[0] if len(items) == 1 else {"anyOf": items},
        "maxItems": MAX_CALLS,
    }
    if at_least:
        calls["minItems"] = at_least
    return _strict_object({"say": {"type": "string"}, "calls": calls})


def _choose_functions(tools: Sequence[dict[str, Any]], choice: Any) -> tuple[list[Function], bool]:
    """The tools that `tool_choice` leaves, and whether one of them must be called."""
    name = chosen_tool(choice)
    functions: list[Function] = [tool["function"] for tool in tools]
    if name == "none":
        return [], False
    if name not in (None, "any"):
        functions = [function for function in functions if function["name"] == name]
    return functions, name is not None


def _parameters(function: Function) -> dict[str, Any]:
    return cast("dict[str, Any]", function.get("parameters")) or {
        "type": "object",
        "properties": {},
    }


def _strict_object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _simplify(schema: Mapping[str, Any]) -> dict[str, Any]:
    simple = {word: schema[word] for word in _GRAMMAR if word in schema}
    if "properties" in schema:
        simple["properties"] = {
            name: _simplify(part) for name, part in schema["properties"].items()
        }
        simple["additionalProperties"] = False
    if "items" in schema:
        simple["items"] = _simplify(schema["items"])
    if "anyOf" in schema:
        simple["anyOf"] = [_simplify(part) for part in schema["anyOf"]]
    return simple


def _tool_prompt(functions: Sequence[Function]) -> str:
    lines = ["Tools you may call:"]
    for function in functions:
        parameters = _parameters(function)
        required = cast("list[str]", parameters.get("required", []))
        arguments: list[str] = []
        descriptions: list[str] = []
        for name, part in cast("dict[str, Any]", parameters.get("properties", {})).items():
            mark = "" if name in required else "?"
            arguments.append(f"{name}{mark}: {part.get('type', 'any')}")
            if part.get("description"):
                descriptions.append(f"    {name}: {part['description']}")
        signature = f"{function['name']}({', '.join(arguments)})"
        lines += [f"- {signature}: {function.get('description', '')}", *descriptions]
    lines += [
        'Answer with one JSON object: {"say": "...", "calls": [{"name": "...", "arguments": {...}}]}.',
        "Put one call in `calls` for each part of the request that a tool is for, and one short sentence in `say`.",
        "If no tool is for it, leave `calls` empty and put your whole answer in `say`.",
    ]
    return "\n".join(lines)


def _plain_messages(messages: Sequence[BaseMessage], preface: str) -> list[BaseMessage]:
    """The conversation as one system message and alternating user and assistant text: all that
    small chat templates know."""
    calls_by_id: dict[str | None, ToolCall] = {}
    for message in messages:
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                calls_by_id[call["id"]] = call
    system = [preface]
    turns: list[BaseMessage] = []
    for message in messages:
        match message:
            case SystemMessage():
                system.append(str(message.text))
            case AIMessage():
                turns.append(AIMessage(str(message.text)))
            case ToolMessage():
                turns.append(HumanMessage(_result(message, calls_by_id.get(message.tool_call_id))))
            case _:
                turns.append(HumanMessage(_quote(str(message.text))))
    if _after_results(messages):
        turns.append(HumanMessage("Answer the request from these results, in plain words."))
    # Small chat templates take one system message, at the head.
    turns = [SystemMessage("\n\n".join(filter(None, system))), *turns]
    return merge_message_runs([turn for turn in turns if turn.content], chunk_separator="\n\n")


def _after_results(messages: Sequence[BaseMessage]) -> bool:
    return bool(messages) and isinstance(messages[-1], ToolMessage)


def _result(message: ToolMessage, call: ToolCall | None) -> str:
    if call:
        label = f"{call['name']} {json.dumps(call['args'], ensure_ascii=False)}"
    else:
        label = message.name or "a tool"
    return f"Result of {label}:\n{_quote(str(message.text)) or '(nothing)'}"


def _quote(text: str) -> str:
    """Returns a text from outside in which no line reads like the head of a tool's result."""
    return _RESULT.sub("> ", text)
