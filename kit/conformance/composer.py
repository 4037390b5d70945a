"""The scripted models: which calls they make, and how the two composers word what came of them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, cast

from kit.conformance.scenario import ChildPlan, Composer, Scenario

JSON = dict[str, Any]
ENDLESS = 60
"""Calls after which an agent that never ends gives up, so that a system without a limit comes to an end."""
FINAL_ANSWER = "final_answer"
"""The tool by which agents of smolagents hand in their text."""
_ids = count(1)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model makes; `arguments` are as it writes them."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """What a model says: a text, or calls."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


def orchestrator_turn(
    scenario: Scenario,
    composer: Composer,
    messages: Sequence[JSON],
    tools: Sequence[JSON],
    opening: str,
) -> ModelTurn:
    """The next turn of the orchestrator's model: its calls, and after them the composed text.

    `opening` is the last message of the user as it stood at the model's first call.
    """
    names = [child.name for child in scenario.calls]
    results = _after_calls(messages, scenario.message, names)
    if results is None:
        results = _appendix(messages, opening)
    if results is None:
        return ModelTurn(calls=tuple(_calls(scenario, tools)))
    if composer == "faithful":
        text = _repeat(results)
    else:
        text = _claim(scenario, results)
    return _turn_of(text, tools)


def child_turn(
    child: ChildPlan,
    calls_so_far: int,
    messages: Sequence[JSON],
    tools: Sequence[JSON],
    opening: str,
) -> ModelTurn:
    """The next turn of a child's own model: it calls its tool, and repeats what that said."""
    results = _after_calls(messages, "", ())
    if results is None:
        results = _appendix(messages, opening)
    endless = child.fault == "never_ends" and calls_so_far < ENDLESS
    own = _tool_of(f"{child.name}_lookup", tools)
    if own is not None and (results is None or endless):
        arguments = json.dumps(_arguments(own, child.name, 1))
        return ModelTurn(calls=(ToolCall(_new_id(), own["name"], arguments),))
    return _turn_of(" ".join(content for _, content in results or []), tools)


def _turn_of(text: str, tools: Sequence[JSON]) -> ModelTurn:
    final = _tool_of(FINAL_ANSWER, tools)
    if final is None:
        return ModelTurn(text)
    return ModelTurn(calls=(ToolCall(_new_id(), FINAL_ANSWER, json.dumps({"answer": text})),))


# ── what came of the calls ────────────────────────────────────────────────────────────────────────────────


def _after_calls(
    messages: Sequence[JSON], question: str, children: Sequence[str]
) -> list[tuple[str, str]] | None:
    """Pairs of a child and what came of it, after the calls of this turn; None where none were made yet."""
    start = 0
    for place, message in enumerate(messages):
        if message["role"] == "user" and question in text_of(message):
            start = place
            if not question:
                break
    names: dict[str, list[str]] = {}
    results: list[tuple[str, str]] = []
    has_called = False
    for message in messages[start + 1 :]:
        if message["role"] == "assistant":
            has_called = has_called or bool(message.get("tool_calls") or text_of(message))
            for call in message.get("tool_calls") or ():
                names.setdefault(call["id"], []).append(_name_of(call["function"], children))
        elif message["role"] == "tool":
            waiting = names.get(message.get("tool_call_id", ""))
            name = waiting.pop(0) if waiting else ""
            results.append((name, _unwrap(text_of(message))))
        elif has_called and text_of(message):
            # Some frameworks hand results on as words of the user.
            results += _in_order(text_of(message), children)
    if not has_called and not results:
        return None
    return results


def _unwrap(content: str) -> str:
    """The text in a JSON object of one text, as which some frameworks hand a result on."""
    try:
        value: Any = json.loads(content)
    except ValueError:
        return content
    if isinstance(value, dict):
        texts = [str(text) for text in cast("JSON", value).values()]
        if len(texts) == 1:
            return texts[0]
    return content


def _in_order(content: str, children: Sequence[str]) -> list[tuple[str, str]]:
    """The lines of a text with the children in the order of their calls, where there is one for each."""
    lines = content.strip().splitlines()
    if len(lines) == len(children) + 1 and lines[0].endswith(":"):
        return list(zip(children, lines[1:], strict=True))
    return [("", content)]


def last_of_user(messages: Sequence[JSON]) -> str:
    """The text of the last message in the role of the user."""
    for message in reversed(messages):
        if message["role"] == "user":
            return text_of(message)
    return ""


def _appendix(messages: Sequence[JSON], opening: str) -> list[tuple[str, str]] | None:
    """What was added to the user's message: some frameworks hand errors on in it, and not the call."""
    text = last_of_user(messages)
    if opening and text.startswith(opening) and text != opening:
        return [("", text.removeprefix(opening))]
    return None


def text_of(message: JSON) -> str:
    """The text of a message, whose content may be a string or a list of parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    parts: list[str] = []
    for part in content:
        parts.append(part.get("text") or "")
    return "".join(parts)


def _name_of(function: JSON, children: Sequence[str]) -> str:
    """The child that a call names: its tool's name, or the argument of a tool that starts agents."""
    written = function.get("arguments") or "{}"
    try:
        arguments: Any = json.loads(written)
    except ValueError:
        arguments = {}
        # Who wrote broken arguments knows whom they were for.
        for child in children:
            if child in written:
                return child
    if "subagent_type" in arguments:
        return str(arguments["subagent_type"])
    return str(function["name"]).removeprefix("ask_")


# ── the composers ────────────────────────────────────────────────────────────────────────────────────


def _repeat(results: Sequence[tuple[str, str]]) -> str:
    lines: list[str] = []
    for name, content in results:
        words = " ".join(content.split())
        if name:
            lines.append(f"About {name}: {words or 'nothing came back'}")
        elif words:
            lines.append(words)
    return "\n".join(lines) or "I was given nothing."


def _claim(scenario: Scenario, results: Sequence[tuple[str, str]]) -> str:
    material = "\n".join(content for _, content in results)
    lines: list[str] = []
    for child in scenario.children:
        if child.value in material:
            lines.append(child.answer)
        else:
            lines.append(f"Your {child.name} reference is {child.lie}.")
    lines.append("Everything you asked for went well.")
    return "\n".join(lines)


# ── the calls ────────────────────────────────────────────────────────────────────────────────────────


def _calls(scenario: Scenario, tools: Sequence[JSON]) -> Iterator[ToolCall]:
    same_id = _new_id()
    number = len(scenario.calls)
    for child in scenario.calls:
        name, arguments = _call_of(child.name, tools, number)
        if scenario.model == "broken_arguments" and child is scenario.children[1]:
            arguments = '{"request": "hotels'
        call_id = same_id if scenario.model == "same_id" else _new_id()
        yield ToolCall(call_id, name, arguments)
    if scenario.model == "unknown_tool":
        yield ToolCall(_new_id(), "ask_the_oracle", json.dumps({"request": "everything"}))


def _call_of(child: str, tools: Sequence[JSON], number: int) -> tuple[str, str]:
    tool = _tool_of(child, tools)
    if tool is not None:
        return tool["name"], json.dumps(_arguments(tool, child, number))
    starter = _tool_with("subagent_type", tools)
    if starter is not None:
        arguments = {"description": _request(child), "subagent_type": child}
        return starter["name"], json.dumps(arguments)
    return child, json.dumps({"request": _request(child)})


def _request(child: str) -> str:
    return f"What is the {child} reference?"


def _arguments(tool: JSON, child: str, number: int) -> JSON:
    """A request for the first text that the tool asks for, and the number of parts for a count."""
    required: Sequence[str] = _schema(tool).get("required") or ()
    arguments: JSON = {}
    for name, field in _properties(tool).items():
        kind = field.get("type")
        if kind == "integer":
            arguments[name] = number
        elif not arguments or name in required:
            arguments[name] = _request(child)
    return arguments


def _tool_of(name: str, tools: Sequence[JSON]) -> JSON | None:
    for tool in tools:
        function = tool.get("function", tool)
        if function["name"] in (name, f"ask_{name}", f"transfer_to_{name}"):
            return function
    return None


def _tool_with(field: str, tools: Sequence[JSON]) -> JSON | None:
    for tool in tools:
        function = tool.get("function", tool)
        if field in _properties(function):
            return function
    return None


def _schema(tool: JSON) -> JSON:
    return tool.get("parameters") or {}


def _properties(tool: JSON) -> Mapping[str, JSON]:
    """Name -> schema of each argument."""
    return _schema(tool).get("properties") or {}


def _new_id() -> str:
    return f"call_{next(_ids):06d}"
