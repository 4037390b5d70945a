"""The offline stand-in as the executor of one step of a plan: from schemas and templates, without
any judgement.

It calls the skill of the step with what the task and the input give for its schema. Of what comes
back it keeps the fields of the return spec, and the rows whose flags and options the task names. A
result that is too long to read is cut down by a script, which is a template (`SCRIPT`). A call that
failed is made once more; after a second fault the step cannot be done.
"""

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from langchain_core.messages import BaseMessage

from kit.core.errors import ShapeError
from kit.core.schema.shape import schema_of
from kit.models.offline import projection
from kit.models.offline.arguments import fill
from kit.models.offline.composition import Result
from kit.models.offline.conversation import Conversation, Tool
from kit.models.offline.extraction import Source, capitalised, quoted
from kit.models.offline.json_schema import (
    Schema,
    kind_of,
    plain,
    properties_of,
    without_references,
)

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
_COUNTS = ("limit", "count", "top", "size")
"""Names of the argument that says how many rows are returned."""
Move: TypeAlias = tuple[str, dict[str, Any]]
"""The next tool call: its tool and its arguments."""


def _file_id(result: Result) -> str | None:
    """The file that a result stands in, where it is too long to read."""
    match = _FILE.search(result.text)
    if match:
        return match[1]
    return None


def _data(result: Result) -> Any:
    """A result as JSON; None where it is none."""
    try:
        return json.loads(result.text)
    except ValueError:
        return None


def plays_executor(tools: Sequence[Tool]) -> bool:
    """Whether these are an executor's tools."""
    return {tool.name for tool in tools} >= {CALL, WRITE, RUN, GIVE_UP}


def executor_turn(messages: Sequence[BaseMessage]) -> str | list[Move]:
    """Returns what the executor does next: a call, or its last words."""
    talk = Conversation(messages)
    try:
        brief = json.loads(str(messages[talk.asked_at].text).rpartition("\n\n")[2])
        skill = brief["skills"][0]
        step = _Step(
            task=brief["task"],
            skill=skill["id"],
            takes=without_references(skill["input_schema"]),
            gives=without_references(skill["output_schema"]),
            shape=schema_of(brief["return_spec"]["shape"]),
            input=brief.get("input"),
        )
        move = step.next_move(talk)
    except (ValueError, KeyError, TypeError, IndexError, ShapeError) as error:
        return f"This is no step of a plan that I can read: {type(error).__name__}."
    if isinstance(move, str):
        return move
    return [move]


@dataclass(frozen=True)
class _Step:
    task: str
    skill: str
    takes: Schema
    gives: Schema
    shape: dict[str, Any]
    input: Any

    def next_move(self, talk: Conversation) -> Move | str:
        if not talk.results:
            return self._begin()
        last = talk.results[-1]
        file_id = _file_id(last)
        if last.failed:
            return self._after_fault(talk)
        if last.tool == CALL:
            if file_id:
                keep = self._rows_to_keep()
                return self._script(f"project(data, {self.shape!r}, {keep!r})", file_id)
            return self._write(_data(last))
        if last.tool == RUN:
            if not any(result.tool == CALL for result in talk.results):
                return self._call(_data(last), file_id)
            if file_id:
                return WRITE, {"key": self._key, "file_id": file_id}
            return WRITE, {"key": self._key, "data": _data(last)}
        if last.tool == WRITE:
            return "The step is done."
        return "The step cannot be done as it is."

    def _begin(self) -> Move:
        """Calls the skill; an input that stands in a file is first reduced to the lists that it takes."""
        value = self.input
        if not isinstance(value, Mapping):
            return self._call(value)
        file = cast("Mapping[str, Any]", value)
        if not {"file_id", "begins"} <= file.keys():
            return self._call(file)
        lists: list[str] = []
        for name, spec in properties_of(self.takes).items():
            if kind_of(spec) == "array":
                pattern = str(spec.get("items", {}).get("pattern", ""))
                lists.append(f"{name!r}: collect(data, {name!r}, {pattern!r})")
        return self._script(f"{{{', '.join(lists)}}}", str(file["file_id"]))

    def _call(self, value: Any, file_id: str | None = None) -> Move:
        arguments = step_arguments(self.takes, self.task, value)
        call: dict[str, Any] = {"skill": self.skill, "arguments": arguments}
        if file_id:
            call["file_id"] = file_id
        return CALL, call

    def _script(self, result: str, file_id: str) -> Move:
        source = inspect.getsource(projection)
        return RUN, {"script": SCRIPT.format(source=source, result=result), "file_id": file_id}

    def _write(self, content: Any) -> Move:
        if (
            isinstance(content, Mapping)
            and cast("Mapping[str, Any]", content).get("found") is False
        ):
            return _give_up(f"{self.skill} has nothing by that id")
        try:
            data = projection.project(content, self.shape, self._rows_to_keep())
        except KeyError as error:
            return _give_up(f"{self.skill} did not return {error.args[0]!r}")
        return WRITE, {"key": self._key, "data": data}

    def _after_fault(self, talk: Conversation) -> Move | str:
        last = talk.results[-1]
        failures = sum(result.failed for result in talk.results)
        # A call whose end nobody knows may have acted, and one that was refused would be again.
        is_final = last.text.startswith(("Nobody knows", "This call was not made"))
        if last.tool == CALL and failures == 1 and not is_final:
            return CALL, talk.arguments[-1]
        return _give_up(f"{last.tool}: {last.text[:200]}")

    def _rows_to_keep(self) -> dict[str, list[Any]]:
        """The options and flags of the skill's rows that the task names."""
        task = " ".join(re.findall(r"\w+", self.task.lower()))
        keep: dict[str, list[Any]] = {}
        for part in properties_of(self.gives).values():
            for name, spec in properties_of(plain(part.get("items", {}))).items():
                options: list[Any] = []
                for option in spec.get("enum", ()):
                    if _is_named(option, task):
                        options.append(option)
                if options:
                    keep[name] = options
                elif kind_of(spec) == "boolean" and _is_named(name, task):
                    keep[name] = [not re.search(rf"\b(?:not|no|non) {re.escape(name)}\b", task)]
        return keep

    @property
    def _key(self) -> str:
        return next(iter(self.shape.get("properties", {})), "result")


def _give_up(reason: str) -> Move:
    suggestion = "plan it with another skill, ask for less of the data, or return fewer fields"
    return GIVE_UP, {"reason": reason, "suggestion": suggestion}


def step_arguments(schema: Schema, task: str, value: Any = None) -> dict[str, Any]:
    """Returns the arguments that the words of a task give for an input schema, and ids of its input.

    A number is what it stands beside, else how many rows are asked for; where no number is asked
    for, all rows are.
    """
    required = cast("Sequence[str]", schema.get("required") or ())
    names = [*quoted(task), *capitalised(task)]
    filled = fill(schema, Source(task, input=value))
    arguments: dict[str, Any] = {}
    for name, spec in properties_of(schema).items():
        argument = filled.get(name)
        is_free = kind_of(spec) == "string" and not {"enum", "pattern"} & spec.keys()
        if is_free and name not in required and argument not in names:
            # The words of a task say what to do; only a name in it narrows what a skill looks for.
            continue
        if argument is None and name in _COUNTS:
            argument = spec.get("maximum")
        if argument not in (None, []):
            arguments[name] = argument
    return arguments


def _is_named(word: Any, task: str) -> bool:
    return re.search(rf"\b{re.escape(str(word))}\b", task, re.I) is not None
