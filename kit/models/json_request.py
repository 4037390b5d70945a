"""A request to a model without tool calls: tools as text, history as plain turns, the answer bound to a JSON schema."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from langchain_core.utils.json_schema import dereference_refs

Function = Mapping[str, Any]
"""The `function` part of a tool in OpenAI's form: name, description, parameters."""

MAX_CALLS = 8
"""Calls one schema-bound reply may hold; small models repeat themselves until something stops them."""
_GRAMMAR = ("type", "enum", "const", "required")
"""Schema keywords that survive; llama.cpp refuses some patterns and long repetitions."""


def asked(
    messages: Sequence[BaseMessage], *, tools: Sequence[dict[str, Any]] = (), tool_choice: Any = None, **options: Any
) -> tuple[list[BaseMessage], dict[str, Any], tuple[str, ...]]:
    """What the inner model is sent: messages in plain text, options, and the names it may call (none: no schema)."""
    functions: list[Function] = [tool["function"] for tool in tools]
    forced = tool_choice not in (None, False, "auto", "none")
    if forced and tool_choice not in (True, "any", "required"):
        only = tool_choice.get("function", tool_choice).get("name") if isinstance(tool_choice, dict) else tool_choice
        functions = [function for function in functions if function["name"] == only]
    after_results = isinstance(messages[-1], ToolMessage)
    if not functions or tool_choice in (False, "none") or (after_results and not forced):
        return _plain(messages, ""), options, ()
    schema = {"name": "answer", "schema": answer_schema(functions, at_least=int(forced))}
    options["response_format"] = {"type": "json_schema", "json_schema": schema}
    return _plain(messages, _described(functions)), options, tuple(function["name"] for function in functions)


def answer_schema(functions: Sequence[Function], at_least: int = 0) -> dict[str, Any]:
    """The JSON Schema of `{"say", "calls"}` over these tools; tools with equal arguments share one branch."""
    branches: dict[str, tuple[list[str], dict[str, Any]]] = {}
    for function in functions:
        parameters = _simple(_inlined(function.get("parameters") or {"type": "object"}))
        branches.setdefault(json.dumps(parameters, sort_keys=True), ([], parameters))[0].append(function["name"])
    items = [_closed({"name": {"type": "string", "enum": names}, "arguments": args}) for names, args in branches.values()]
    calls = {"type": "array", "items": items[0] if len(items) == 1 else {"anyOf": items}, "maxItems": MAX_CALLS}
    return _closed({"say": {"type": "string"}, "calls": calls | ({"minItems": at_least} if at_least else {})})


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    return dereference_refs(schema, skip_keys=[]) if "$defs" in schema else schema


def _simple(schema: dict[str, Any]) -> dict[str, Any]:
    kept = {word: schema[word] for word in _GRAMMAR if word in schema}
    if "properties" in schema:
        kept["properties"] = {name: _simple(part) for name, part in schema["properties"].items()}
        kept["additionalProperties"] = False
    if "items" in schema:
        kept["items"] = _simple(schema["items"])
    if "anyOf" in schema:
        kept["anyOf"] = [_simple(part) for part in schema["anyOf"]]
    return kept


def _described(functions: Sequence[Function]) -> str:
    lines = ["Tools you may call:"]
    for function in functions:
        parameters = function.get("parameters") or {}
        required = parameters.get("required", ())
        parts: dict[str, dict[str, Any]] = parameters.get("properties", {})
        signature = ", ".join(
            f"{name}{'' if name in required else '?'}: {part.get('type', 'any')}" for name, part in parts.items()
        )
        lines.append(f"- {function['name']}({signature}): {function.get('description', '')}")
        lines += [f"    {name}: {part['description']}" for name, part in parts.items() if part.get("description")]
    return "\n".join(
        [
            *lines,
            'Answer with one JSON object: {"say": "...", "calls": [{"name": "...", "arguments": {...}}]}.',
            "Put one call in `calls` for each part of the request that a tool is for, and one short sentence in `say`.",
            "If no tool is for it, leave `calls` empty and put your whole answer in `say`.",
        ]
    )


def _plain(messages: Sequence[BaseMessage], preface: str) -> list[BaseMessage]:
    """The conversation as one system message and alternating user and assistant text: all that small chat templates know."""
    called = {call["id"]: call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls}
    system = [preface, *(message.text for message in messages if isinstance(message, SystemMessage))]
    turns: list[tuple[type[BaseMessage], list[str]]] = [(SystemMessage, [text for text in system if text])]
    for message in messages:
        match message:
            case SystemMessage():
                continue
            case AIMessage():
                role, text = AIMessage, message.text
            case ToolMessage():
                role, text = HumanMessage, _result(message, called.get(message.tool_call_id))
            case _:
                role, text = HumanMessage, message.text
        if text and turns[-1][0] is role:
            turns[-1][1].append(text)
        elif text:
            turns.append((role, [text]))
    if isinstance(messages[-1], ToolMessage):
        turns[-1][1].append("Answer the request from these results, in plain words.")
    return [role(content="\n\n".join(texts)) for role, texts in turns if texts]


def _result(message: ToolMessage, call: ToolCall | None) -> str:
    asked = f"{call['name']} {json.dumps(call['args'], ensure_ascii=False)}" if call else message.name or "a tool"
    return f"Result of {asked}:\n{message.text or '(nothing)'}"
