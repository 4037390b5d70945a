"""A conversation as the offline stand-in reads it: the request, what came before it, and the tools at hand."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from kit.core.language.retry import retries
from kit.core.outcome import BESIDE, NO_ANSWER, NO_TEXT, NOT_ASKED, SET_ASIDE
from kit.core.picture import strip_marks
from kit.models.offline.composition import Result
from kit.models.offline.json_schema import properties_of, without_references
from kit.models.offline.picture_text import describe_pictures
from kit.models.offline.similarity import content, spoken

READ = 16_000
"""Characters of one message that are read."""
_IN_PLAY = re.compile(r"^[^\w\n]*Called in the previous turn:[ \t]*(.*)$", re.M)
_OPEN = re.compile(r"^Still without an answer: (.*)$", re.M)
_NO_FIT = re.compile(r"When no tool fits:\s*([\w-]+)")
_REFERENCES = re.compile(rf"\n\n\({BESIDE} [^\n)]*\)")
_IDS = re.compile(r"^\w*_ids?: (.*)$", re.M)
_ID = re.compile(r"[\w-]+")
_REFERENT = re.compile(r"The user means (.*) \((\S+) (\S*)\)\.")
_PICTURED = re.compile(r"\b(?:photo|picture|image) of ([\w\s,]+?) goes to (ask_\w+)")
_HOLDS = re.compile(r"hand the rest over[^\n]*\nYour part: (.+)")
_ALREADY = re.compile(r"Answered already by ([\w-]+):")
_AT_MOST = re.compile(r"[Cc]all at most (\d+)\b")


@dataclass(frozen=True)
class Tool:
    """A bound tool as any model sees it."""

    name: str
    description: str
    schema: Mapping[str, Any]

    @property
    def label(self) -> str:
        return spoken(self.name.removeprefix("ask_"))

    @property
    def routes(self) -> bool:
        """True for a sub-agent: its call carries the request and how many were seen."""
        properties = properties_of(self.schema)
        return (
            self.name.startswith("ask_") and "query" in properties and "intent_count" in properties
        )


def tool_of(spec: Mapping[str, Any]) -> Tool:
    """Reads a function in OpenAI format, with or without its envelope."""
    inner = spec.get("function")
    body = cast(Mapping[str, Any], inner if isinstance(inner, Mapping) else spec)
    schema = cast(Mapping[str, Any], body.get("parameters") or body.get("input_schema") or {})
    return Tool(
        str(body.get("name") or ""),
        str(body.get("description") or ""),
        without_references(schema),
    )


def text_of(message: BaseMessage) -> str:
    """The text of a message."""
    content: Any = message.content
    if isinstance(content, list):
        blocks = cast("list[Any]", content)
    else:
        blocks = [content]
    texts: list[str] = []
    for block in blocks:
        texts.append(block if isinstance(block, str) else str(block.get("text") or ""))
    return "\n".join(text for text in texts if text)[:READ].strip()


def _without_references(text: str) -> str:
    """A result without the references to what is shown beside it."""
    return _REFERENCES.sub("", text)


@dataclass(frozen=True)
class Conversation:
    """Messages up to and including the latest."""

    messages: Sequence[BaseMessage]

    @cached_property
    def asked_at(self) -> int:
        """Position of the latest human message; -1 without one."""
        places: list[int] = []
        for i, message in enumerate(self.messages):
            if isinstance(message, HumanMessage):
                places.append(i)
        if places:
            return places[-1]
        return -1

    @cached_property
    def typed_words(self) -> str:
        """The words of the latest human message."""
        if self.asked_at >= 0:
            return strip_marks(text_of(self.messages[self.asked_at]))
        return ""

    @cached_property
    def request(self) -> str:
        """The words; of a picture that came alone, what it shows."""
        return self.typed_words or self.picture

    @cached_property
    def picture_text(self) -> str:
        """What the pictures of the request show."""
        if self.asked_at >= 0:
            return describe_pictures(self.messages[self.asked_at])
        return ""

    @property
    def picture(self) -> str:
        if self.picture_text:
            return f"A picture of {self.picture_text}"
        return ""

    @property
    def has_picture(self) -> bool:
        """A picture came with the request, whether or not anything is known of it."""
        return self.asked_at >= 0 and not isinstance(
            cast(Any, self.messages[self.asked_at].content), str
        )

    @cached_property
    def referent(self) -> tuple[str, str, str] | None:
        """What the request means of the things shown, as the prompt or the caller says: its title
        or id, its type, its id."""
        if matches := _REFERENT.findall(self.system):
            return matches[-1]
        return None

    @property
    def ids(self) -> list[str]:
        """Ids that the hand-off names: what the request is about."""
        texts: list[str] = []
        for line in _IDS.findall(self.system):
            for one in _ID.findall(line):
                texts.append(one)
        return texts

    @property
    def picture_tool(self) -> str | None:
        """The tool the prompt names for such a picture."""
        shows = set(content(self.picture_text))
        for what, tool in _PICTURED.findall(self.system):
            if shows.intersection(content(what)):
                return tool
        return None

    @cached_property
    def system(self) -> str:
        return "\n".join(
            text_of(message) for message in self.messages if isinstance(message, SystemMessage)
        )

    @cached_property
    def before(self) -> tuple[BaseMessage, ...]:
        """Earlier turns, without the system prompt."""
        base_messages: list[BaseMessage] = []
        for m in self.messages[: max(0, self.asked_at)]:
            if not isinstance(m, SystemMessage):
                base_messages.append(m)
        return tuple(base_messages)

    @property
    def last_request(self) -> str:
        """The user's last words before the request; empty at the beginning."""
        for message in reversed(self.before):
            if isinstance(message, HumanMessage):
                return text_of(message)
        return ""

    @cached_property
    def last_reply(self) -> str:
        """The assistant's last words before the request."""
        spoken_lines = (
            text_of(message) for message in reversed(self.before) if isinstance(message, AIMessage)
        )
        for line in spoken_lines:
            if line:
                return line
        return ""

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """The last round of tool results, in the order their calls were made."""
        places = [i for i, message in enumerate(self.messages) if isinstance(message, ToolMessage)]
        if not places:
            return ()
        calls: dict[str, tuple[int, str]] = {}
        last_call = -1
        for i, message in enumerate(self.messages[: places[-1]]):
            if isinstance(message, AIMessage) and message.tool_calls:
                last_call = i
                calls: dict[str, tuple[int, str]] = {}
                for n, call in enumerate(message.tool_calls):
                    calls[str(call["id"])] = (n, call["name"])
        pairs: list[tuple[int, Result]] = []
        for at in places:
            message = cast(ToolMessage, self.messages[at])
            text = _without_references(text_of(message))
            if at > last_call and text != SET_ASIDE:
                order, name = calls.get(message.tool_call_id, (len(calls), message.name or "that"))
                pairs.append(
                    (
                        order,
                        Result(name, "" if text == NO_TEXT else text, message.status == "error"),
                    )
                )
        return tuple(result for _, result in sorted(pairs, key=lambda pair: pair[0]))

    @property
    def left_out(self) -> tuple[Result, ...]:
        """What the prompt says was not asked: it is owned up to as the results of calls are."""
        found: list[Result] = []
        for line in self.system.splitlines():
            if line.startswith(NOT_ASKED):
                found.append(Result("", line, failed=True))
        return tuple(found)

    @cached_property
    def calls(self) -> dict[str, str]:
        """Tool call id -> name of the tool, for every call since the request."""
        since = (
            message
            for message in self.messages[self.asked_at + 1 :]
            if isinstance(message, AIMessage)
        )
        calls: dict[str, str] = {}
        for message in since:
            for call in message.tool_calls:
                calls[str(call["id"])] = call["name"]
        return calls

    @cached_property
    def all_results(self) -> tuple[Result, ...]:
        """Every result since the request, whatever the round."""
        since = (
            message
            for message in self.messages[self.asked_at + 1 :]
            if isinstance(message, ToolMessage)
        )
        names = (
            (message, self.calls.get(message.tool_call_id, message.name or "that"))
            for message in since
        )
        results: list[Result] = []
        for m, name in names:
            results.append(Result(name, _without_references(text_of(m)), m.status == "error"))
        return tuple(results)

    @cached_property
    def has_results(self) -> bool:
        """True when results have arrived since the request."""
        for message in self.messages[self.asked_at + 1 :]:
            if isinstance(message, ToolMessage):
                return True
        return False

    @cached_property
    def in_play(self) -> tuple[str, ...] | None:
        """Tools called in the previous turn; None when nothing says so."""
        if lines := _IN_PLAY.findall(self.system):
            return tuple(
                name for name in re.findall(r"[\w-]+", lines[-1]) if name.lower() != "none"
            )
        for message in reversed(self.before):
            if isinstance(message, AIMessage) and message.tool_calls:
                return tuple(call["name"] for call in message.tool_calls)
        return None

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Tools whose question is still open."""
        lines = _OPEN.findall(self.system)
        if lines:
            return tuple(re.findall(r"[\w-]+", lines[-1]))
        return ()

    @property
    def open_question(self) -> str | None:
        """What to answer now, where the request only says to try again; None where it says something itself."""
        asked: list[str] = []
        for message in self.before:
            if isinstance(message, HumanMessage):
                asked.append(text_of(message))
        if retries(self.request):
            for text in reversed(asked):
                if not retries(text):
                    return text
            return None
        return None

    @property
    def role(self) -> str | None:
        """What this agent's own part is, where it holds the conversation and hands on what is not its part."""
        match = _HOLDS.search(self.system)
        if match:
            return match[1]
        return None

    @property
    def in_turns(self) -> bool:
        """Whether tools are to be called one at a time, with a decision after each."""
        return "one tool at a time" in self.system

    @property
    def may_pass(self) -> bool:
        """Whether its prompt names a reply for requests that it has nothing on."""
        return NO_ANSWER in self.system

    @property
    def no_fit(self) -> str | None:
        """The tool to call when none fits; None when none should be called."""
        names = _NO_FIT.findall(self.system)
        if names and names[-1].lower() != "none":
            return names[-1]
        return None

    @property
    def previous_speakers(self) -> frozenset[str]:
        """Tools of the agents that have had the conversation in this turn."""
        return frozenset(f"ask_{agent}" for agent in _ALREADY.findall(self.system))

    @property
    def most(self) -> int:
        """How many tools may be called."""
        limits = _AT_MOST.findall(self.system)
        if limits:
            return max(1, int(limits[-1]))
        return 8
