"""A recorded call as a value, and recordings as files: one call a line, sorted, long texts that return written once."""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, message_to_dict

from kit.core.bodies.call import CallFailure
from kit.core.context import Principal
from kit.core.errors import CassetteError, error_text
from kit.core.event import Body, Event
from kit.core.limits import Data, read_json
from kit.core.model import ModelSpec
from kit.core.outcome import Outcome, Reason
from kit.core.value import Value, map_leaves
from kit.models.diagnosis import message_of, status_of
from kit.runtime.act_ledger import Paused
from kit.runtime.budget import OverBudget
from kit.runtime.handoff import hide
from kit.tools.tool import ToolResult

_LONG = 60
"""Characters from which a text that stands in several requests is written once."""
_METADATA = ("id", "model_name", "finish_reason", "stop_reason", "done_reason", "status")
"""What of a reply's metadata a turn reads; headers, fingerprints and the like stay out of the file."""
_EXTRAS = ("refusal", "reasoning_content")
"""What of a provider's own fields a turn reads."""

Mode = Literal["replay", "record", "refresh", "live"]
"""How a turn goes on: `replay` makes no call, `record` makes every call, `refresh` makes those that are not
recorded, `live` those for which the record holds nothing at all."""
Request = tuple[tuple[str, str], ...]
"""What was asked: named parts of text. A key is made of them, and a diff is read from them."""


class Header(Value):
    """The first line: what a replay must be told to ask the same again."""

    cassette: Literal[3] = 3
    """The version of the form. A file of another one is refused."""
    today: str | None = None
    model: str | None = None
    """The key that stood in for every agent's model, where one did."""


class RecordedCall(Value):
    """One recorded call: where and what was asked, and what came of it."""

    track: str = ""
    """Which of the file's runs it is of: a cell of a grid; empty where there is one."""
    place: str
    """Where in the turn it was asked from, such as `orchestrator/1.2.rewards:1`."""
    again: int = 1
    """Which of several equal requests from that place."""
    request: Request
    message: Data | None = None
    """A model's reply."""
    pieces: tuple[str, ...] = ()
    """Its text as it streamed."""
    result: ToolResult | None = None
    """A tool's."""
    told: tuple[tuple[float, Body], ...] = ()
    """What the tool said while it ran, and at which second."""
    broken: CallFailure | None = None
    """Set when there is neither; `cancelled` of a call that whoever made it gave up."""
    begun: bool = True
    """Whether anything had arrived."""
    said: int = 0
    """Characters that had, where there is no message."""
    first: float | None = None
    """Seconds to the first piece."""
    seconds: float = 0.0
    """How long it took; of a sub-agent that is played as a whole the second of the turn in which it ended."""
    model: str = ""
    """The key of the model that was asked, where a turn may ask another one now."""
    outcome: Outcome | None = None
    """A sub-agent's."""
    events: tuple[Event, ...] = ()
    """All that happened in it, its start and its end aside."""

    @property
    def was_refused(self) -> bool:
        """Whether an endpoint answered with an error: with another key, or an hour later, it may do
        what it was asked."""
        return self.broken is not None and self.broken.status is not None


_PLAIN = RecordedCall(place="", request=()).model_dump(mode="json")
Key = tuple[str, str, str, int]


def failure_of(error: BaseException, private: Collection[str] = ()) -> CallFailure:
    """Returns how a call failed that raised, without `private` values of its user."""
    kind: Reason = "exception"
    if isinstance(error, TimeoutError):
        kind = "timeout"
    elif isinstance(error, OverBudget):
        kind = "budget"
    elif isinstance(error, asyncio.CancelledError):
        kind = "cancelled"
    elif isinstance(error, Paused):
        kind = "paused"
    failure = CallFailure(
        kind=kind,
        type=type(error).__name__,
        text=error_text(error),
        status=status_of(error),
        message=message_of(error),
    )
    if private:
        return failure.replace(
            text=hide(failure.text, private), message=hide(failure.message, private)
        )
    return failure


def digest(request: Request) -> str:
    """A short name for a request."""
    return hashlib.sha256(json.dumps(request).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def key_of(call: RecordedCall) -> Key:
    return (call.track, call.place, digest(call.request), call.again)


def tool_request(tool: str, principal: Principal, args: Mapping[str, Any]) -> Request:
    """What a tool is asked, and for whom."""
    arguments = json.dumps(dict(args), sort_keys=True, indent=1, default=str)
    return (("tool", tool), ("principal", str(principal)), ("arguments", arguments))


def model_request(
    spec: ModelSpec, tools: Sequence[Mapping[str, Any]], messages: Sequence[BaseMessage]
) -> Request:
    """What a model is asked: which model and how, each tool it may call, each message; ids of tool calls aside."""
    model = [spec.key]
    if spec.name:
        model.append(f"name: {spec.name}")
    if spec.effort:
        model.append(f"effort: {spec.effort}")
    model += [spec.api, spec.routing]
    parts = [("model", "\n".join(model))]
    for tool in tools:
        function = tool.get("function", tool)
        schema = json.dumps(function, sort_keys=True, indent=1)
        parts.append((f"tool {function['name']}", schema))
    for number, message in enumerate(messages, 1):
        parts.append((f"message {number} ({message.type})", _message_text(message)))
    return tuple(parts)


def _message_text(message: BaseMessage) -> str:
    content: Any = message.content
    if not isinstance(content, str):
        content = json.dumps(map_leaves(content, _small), sort_keys=True)
    lines = [content]
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            # The id of a call is the provider's, and another one each time.
            args = json.dumps(call["args"], sort_keys=True, default=str)
            lines.append(f"calls {call['name']}({args})")
    return "\n".join(lines)


def _small(leaf: Any) -> Any:
    """Returns the digest of a picture's bytes, and anything else of a block of content as it is."""
    is_long = isinstance(leaf, str) and len(leaf) > 200 and " " not in leaf
    if is_long:
        return "sha256:" + hashlib.sha256(leaf.encode()).hexdigest()
    return leaf


def plain_message(message: AIMessage) -> dict[str, Any]:
    """A reply as it is kept: without what identifies the account or the machine it came from."""
    record = message_to_dict(message)
    data = record["data"]
    for name, kept_keys in (("response_metadata", _METADATA), ("additional_kwargs", _EXTRAS)):
        fields = data[name]
        data[name] = {key: fields[key] for key in kept_keys if key in fields}
    return record


def lines_of(header: Header, calls: Mapping[Key, RecordedCall]) -> Iterator[str]:
    """The lines of a file: header, shared texts, calls by track, place and request."""
    yield header.model_dump_json() + "\n"
    uses: Counter[str] = Counter()
    for call in calls.values():
        for _, text in call.request:
            uses[text] += len(text) > _LONG
    names: dict[str, str] = {}
    for text, count in uses.items():
        if count > 1:
            names[text] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    for text, name in sorted(names.items(), key=lambda item: item[1]):
        yield json.dumps({"text": name, "is": text}) + "\n"
    # Sorted, so that a file that is recorded again differs by what has changed.
    for _, call in sorted(calls.items()):
        line: dict[str, Any] = {}
        for name, value in call.model_dump(mode="json").items():
            if value != _PLAIN[name]:
                line[name] = value
        request: list[list[Any]] = []
        for label, text in call.request:
            shared = {"text": names[text]} if text in names else text
            request.append([label, shared])
        line["request"] = request
        yield json.dumps(line) + "\n"


def read(path: Path) -> tuple[Header, dict[Key, RecordedCall]]:
    """A file's header and calls. Raises CassetteError, one sentence with file and line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise CassetteError(
            f"cannot read the recording {path}: {reason}; record it first"
        ) from error
    if not lines:
        raise CassetteError(f"{path}:1: the recording is empty; record it again")
    header = Header()
    texts: dict[str, str] = {}
    calls: dict[Key, RecordedCall] = {}
    for number, line in enumerate(lines, 1):
        try:
            row = read_json(line)
            if number == 1:
                header = Header.model_validate(row)
            elif "is" in row:
                texts[row["text"]] = row["is"]
            else:
                call = _call_of(row, texts)
                calls[key_of(call)] = call
        except (ValueError, KeyError, TypeError) as error:
            noun = "the head of a recording of this version" if number == 1 else "a recorded call"
            raise CassetteError(
                f"{path}:{number}: this line is not {noun}; record the file again"
            ) from error
    return header, calls


def _call_of(row: Any, texts: Mapping[str, str]) -> RecordedCall:
    request: list[tuple[str, str]] = []
    for label, text in row["request"]:
        if not isinstance(text, str):
            text = texts[text["text"]]
        request.append((label, text))
    return RecordedCall.model_validate({**row, "request": request})
