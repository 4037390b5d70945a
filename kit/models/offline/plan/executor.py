"""Carries out one step of a plan by real tool calls, for the offline stand-in: from schemas and
templates, without any judgement.

It calls the skills of the step, one after the other, with what the task and the input give for
their schemas. Of what comes back it keeps the fields of the return spec, and the rows whose flags
and options the task names. A result that it cannot read it has cut down by a script, which is a
template (`SCRIPT`). After a first fault it makes one more attempt; after a second it says that the
step cannot be done.
"""

import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from kit.core.errors import ShapeError
from kit.core.schema.shape import schema_of
from kit.models.offline.conversation import Tool
from kit.models.offline.json_schema import inlined, kind_of, properties_of
from kit.models.offline.plan import projection
from kit.models.offline.plan.arguments import step_arguments
from kit.models.offline.plan.skill import SCHEMAS

CALL = "call_skill"
WRITE = "write_memory"
RUN = "exec_python"
GIVE_UP = "insufficient"
SCRIPT = """# Template of the offline stand-in.
{source}
import json

data = json.load(open(input_file, encoding="utf-8"))
print(json.dumps({result}, ensure_ascii=False))
"""
_FILE = re.compile(r"exec_python, file_id (tmp_\d+)\.$")
Move: TypeAlias = tuple[str, dict[str, Any]]
"""The next tool call: its tool and its arguments."""


class Call(NamedTuple):
    """A tool call that was made, and what came of it."""

    tool: str
    arguments: Mapping[str, Any]
    text: str
    failed: bool

    @property
    def file_id(self) -> str | None:
        """The file that its result stands in, where that is too long to read."""
        match = _FILE.search(self.text)
        if match:
            return match[1]
        return None

    @property
    def data(self) -> Any:
        """Its result as JSON; None where it is none."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None


def plays_executor(tools: Sequence[Tool]) -> bool:
    """Whether these are an executor's tools."""
    return {tool.name for tool in tools} >= {CALL, WRITE, RUN, GIVE_UP}


def executor_turn(messages: Sequence[BaseMessage]) -> str | list[Move]:
    """What the executor does next: a call, or its last words."""
    asked_at = max(
        (at for at, message in enumerate(messages) if isinstance(message, HumanMessage)), default=0
    )
    try:
        brief = json.loads(str(messages[asked_at].text).rpartition("\n\n")[2])
        brief["skills"] = [
            {**skill, **{name: inlined(skill[name]) for name in SCHEMAS}}
            for skill in brief["skills"]
        ]
        move = _Step(brief, tuple(_calls(messages[asked_at + 1 :]))).next_move()
    except (ValueError, KeyError, TypeError, ShapeError) as error:
        return f"This is no step of a plan that I can read: {type(error).__name__}."
    if isinstance(move, str):
        return move
    return [move]


def _calls(messages: Sequence[BaseMessage]) -> Iterator[Call]:
    """Returns the tool calls since the request, each with its result, which is read whole."""
    results: dict[str, ToolMessage] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            results[message.tool_call_id] = message
    for message in messages:
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            if (result := results.get(call["id"] or "")) is not None:
                yield Call(call["name"], call["args"], str(result.text), result.status == "error")


@dataclass(frozen=True)
class _Step:
    brief: Mapping[str, Any]
    calls: tuple[Call, ...]

    @property
    def task(self) -> str:
        return self.brief["task"]

    @property
    def skills(self) -> list[Mapping[str, Any]]:
        return self.brief["skills"]

    @cached_property
    def shape(self) -> dict[str, Any]:
        return schema_of(self.brief["return_spec"]["shape"])

    @cached_property
    def keep(self) -> dict[str, list[Any]]:
        """The options and flags of the skills' rows that the task names."""
        task = " ".join(re.findall(r"\w+", self.task.lower()))
        keep: dict[str, list[Any]] = {}
        for name, spec in _row_fields([skill["output_schema"] for skill in self.skills]):
            if options := [
                one
                for one in spec.get("enum", ())
                if re.search(rf"\b{re.escape(str(one))}\b", task)
            ]:
                keep[name] = options
            elif spec.get("type") == "boolean" and re.search(rf"\b{re.escape(name)}\b", task):
                keep[name] = [not re.search(rf"\b(?:not|no|non) {re.escape(name)}\b", task)]
        return keep

    @property
    def content(self) -> dict[str, Any]:
        """All that the skills have returned and can be read."""
        parts: list[Any] = []
        for call in self.calls:
            if call.tool == CALL and not call.failed:
                parts.append(call.data)
        mapping: dict[str, Any] = {}
        for part in parts:
            if isinstance(part, dict):
                for name, value in cast("dict[str, Any]", part).items():
                    mapping[name] = value
        return mapping

    def next_move(self) -> Move | str:
        if not self.calls:
            return self._begin()
        last = self.calls[-1]
        match last.tool:
            case _ if last.failed:
                return self._after_fault(last)
            case tool if tool == CALL:
                if last.file_id:
                    return self._extract(last.file_id)
                return self._write()
            case tool if tool == RUN:
                has_data = any(call.tool == CALL for call in self.calls)
                if has_data:
                    return self._keep(last)
                return self._call(self.skills[0], last.data, last.file_id)
            case tool if tool == WRITE:
                return "The step is done."
            case _:
                return "The step cannot be done as it is."

    def _begin(self) -> Move:
        value: Any = self.brief.get("input")
        skill = self.skills[0]
        if not isinstance(value, dict) or not {"file_id", "begins"} <= value.keys():
            return self._call(skill, value)
        properties = properties_of(skill["input_schema"]).items()
        lists: list[tuple[str, str]] = []
        for name, spec in properties:
            if kind_of(spec) == "array":
                lists.append((name, str(spec.get("items", {}).get("pattern", ""))))
        parts: list[str] = []
        for name, pattern in lists:
            parts.append(f"{name!r}: collect(data, {name!r}, {pattern!r})")
        return self._script(
            "{" + ", ".join(parts) + "}", str(cast("Mapping[str, Any]", value)["file_id"])
        )

    def _call(
        self, skill: Mapping[str, Any], value: Any = None, file_id: str | None = None
    ) -> Move:
        arguments = step_arguments(skill["input_schema"], self.task, value)
        return CALL, {"skill": skill["id"], "arguments": arguments} | (
            {"file_id": file_id} if file_id else {}
        )

    def _extract(self, file_id: str) -> Move:
        return self._script(f"project(data, {self.shape!r}, {self.keep!r})", file_id)

    def _script(self, result: str, file_id: str) -> Move:
        source = inspect.getsource(projection)
        return RUN, {"script": SCRIPT.format(source=source, result=result), "file_id": file_id}

    def _write(self) -> Move:
        """Hands in what the skills have returned; calls the next of them where a field is still to come."""
        content = self.content
        try:
            return WRITE, {
                "key": self._label,
                "data": projection.project(content, self.shape, self.keep),
            }
        except KeyError as error:
            if skill := self._untried():
                return self._call(skill, {"input": self.brief.get("input"), **content})
            return self._give_up(f"no skill of this step returned {error.args[0]!r}")

    def _keep(self, script: Call) -> Move:
        """Hands in what a script has printed."""
        if script.file_id:
            where = {"file_id": script.file_id}
        else:
            where = {"data": script.data}
        return WRITE, {"key": self._label, **where}

    def _after_fault(self, last: Call) -> Move | str:
        """Makes one more attempt: with another skill, or by the same call; one that was refused,
        with what it requires alone."""
        failures = sum(call.failed for call in self.calls)
        if last.tool == CALL and failures == 1 and not last.text.startswith("Nobody knows"):
            if skill := self._untried():
                return self._call(skill, self.brief.get("input"))
            if not last.text.startswith("This call was not made"):
                return CALL, dict(last.arguments)
            schema = next(
                skill["input_schema"]
                for skill in self.skills
                if skill["id"] == last.arguments["skill"]
            )
            least: dict[Any, Any] = {}
            for name, value in last.arguments["arguments"].items():
                if name in schema.get("required", ()):
                    least[name] = value
            return CALL, {**last.arguments, "arguments": least}
        return self._give_up(f"{last.tool}: {last.text[:200]}")

    def _give_up(self, reason: str) -> Move:
        suggestion = "plan it with another skill, ask for less of the data, or return fewer fields"
        return GIVE_UP, {"reason": reason, "suggestion": suggestion}

    def _untried(self) -> Mapping[str, Any] | None:
        names: list[Any] = []
        for call in self.calls:
            if call.tool == CALL:
                names.append(call.arguments["skill"])
        for skill in self.skills:
            if skill["id"] not in names:
                return skill
        return None

    @property
    def _label(self) -> str:
        return next(iter(self.shape.get("properties", {})), "result")


def _row_fields(schemas: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Returns the fields of the rows that results hold, with their schemas."""
    for schema in schemas:
        for part in schema.get("properties", {}).values():
            yield from part.get("items", {}).get("properties", {}).items()
