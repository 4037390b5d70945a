"""A conversation as the offline stand-in reads it: the request, what came before it, and the tools at hand."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from kit.core.language.retry import retries
from kit.core.language.words import spoken, words
from kit.core.model import EmbedderName
from kit.core.outcome import BESIDE, FOR_NOBODY, NO_ANSWER, NO_TEXT, NOT_ASKED, SET_ASIDE
from kit.core.picture import strip_marks
from kit.models.offline.composition import Result
from kit.models.offline.english import CORRECTION, DOING, REFERENCE
from kit.models.offline.extraction import ENTITY, identifiers
from kit.models.offline.json_schema import without_references
from kit.models.offline.phrases import Phrases, phrases_of
from kit.models.offline.picture_text import describe_pictures
from kit.models.offline.similarity import Document, content

READ = 16_000
"""Characters of one message that are read."""
READ_OF_RESULT = 100_000
"""Characters of what a tool returned: a step is shown 32,000, and what is cut off here nobody would say."""
EARLIER = "From earlier in the conversation:"
"""How a sub-agent's prompt tells what was said to others."""
_CONTEXT = re.compile(rf"^{EARLIER} (.*)$", re.M)
_IN_PLAY = re.compile(r"^[^\w\n]*Called in the previous turn:[ \t]*(.*)$", re.M)
_OPEN = re.compile(r"^Still without an answer: (.*)$", re.M)
_NO_FIT = re.compile(r"When no tool fits:\s*([\w-]+)")
_REFERENCES = re.compile(rf"\n\n\({BESIDE} [^\n)]*\)")
_IDS = re.compile(r"^\w*_ids?: (.*)$", re.M)
_NAME = re.compile(r"[\w-]+")
_REFERENT = re.compile(r"The user means (.*) \((\S+) (\S*)\)\.")
_PICTURED = re.compile(r"\b(?:photo|picture|image) of ([\w\s,]+?) goes to (ask_\w+)")
_HOLDS = re.compile(r"hand the rest over[^\n]*\nYour part: (.+)")
_ALREADY = re.compile(r"Answered already by ([\w-]+):")
_AT_MOST = re.compile(r"[Cc]all at most (\d+)\b")
M = TypeVar("M", bound=BaseMessage)


@dataclass(frozen=True)
class Tool:
    """A bound tool as any model sees it."""

    name: str
    description: str
    schema: Mapping[str, Any]
    requests: tuple[str, ...] = ()
    """What people ask it: its card lists them, and models are not sent them."""

    @property
    def label(self) -> str:
        return spoken(self.name.removeprefix("ask_"))

    @property
    def document(self) -> Document:
        """What it is compared by."""
        return Document(self.label, self.description, self.requests)

    @property
    def routes(self) -> bool:
        """True for a sub-agent: its call carries the request and how many were seen."""
        names = self.schema.get("properties") or ()
        return self.name.startswith("ask_") and "query" in names and "intent_count" in names


def tool_of(
    spec: Mapping[str, Any], requests: Mapping[str, tuple[str, ...]] = MappingProxyType({})
) -> Tool:
    """Reads a function in OpenAI format, with or without its envelope. `requests`: the id of an agent or
    a lookup -> those of its card."""
    body = cast("Mapping[str, Any]", spec.get("function") or spec)
    schema = cast("Mapping[str, Any]", body.get("parameters") or {})
    name = str(body.get("name") or "")
    return Tool(
        name=name,
        description=str(body.get("description") or ""),
        schema=without_references(schema),
        # A sub-agent is called by its id with "ask_" before it, a lookup by its own name: "ask_support_service" is one.
        requests=requests.get(name) or requests.get(name.removeprefix("ask_"), ()),
    )


def text_of(message: BaseMessage, longest: int = READ) -> str:
    """The text of a message."""
    content = cast("Any", message.content)
    if isinstance(content, str):
        return content[:longest].strip()
    texts: list[str] = []
    for block in content:
        texts.append(block if isinstance(block, str) else str(block.get("text") or ""))
    return "\n".join(text for text in texts if text)[:longest].strip()


@dataclass(frozen=True)
class Conversation:
    """Messages up to and including the latest."""

    messages: Sequence[BaseMessage]
    embedder: EmbedderName = "words"
    """By whose vectors its texts are compared."""
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Agent id -> its name for people, where its card has one of its own."""

    @cached_property
    def asked_at(self) -> int:
        """Position of the latest human message; -1 without one."""
        position = len(self.messages) - 1
        while position >= 0 and not isinstance(self.messages[position], HumanMessage):
            position -= 1
        return position

    @property
    def _question(self) -> BaseMessage:
        return self.messages[self.asked_at] if self.asked_at >= 0 else HumanMessage("")

    def _since(self, kind: type[M]) -> list[M]:
        return [m for m in self.messages[self.asked_at + 1 :] if isinstance(m, kind)]

    @cached_property
    def typed_words(self) -> str:
        """The words of the latest human message."""
        return strip_marks(text_of(self._question))

    @cached_property
    def request(self) -> str:
        """The words, without "no, I meant" in front; of a picture that came alone, what it shows."""
        return CORRECTION.sub("", self.typed_words) or self.picture

    @cached_property
    def picture_text(self) -> str:
        """What the pictures of the request show."""
        return describe_pictures(self._question)

    @property
    def picture(self) -> str:
        return f"A picture of {self.picture_text}" if self.picture_text else ""

    @property
    def has_picture(self) -> bool:
        """A picture came with the request, whether or not anything is known of it."""
        return not isinstance(cast("Any", self._question.content), str)

    @cached_property
    def system(self) -> str:
        return "\n".join([text_of(m) for m in self.messages if isinstance(m, SystemMessage)])

    @property
    def phrases(self) -> Phrases:
        """The sentences of the session's language."""
        return phrases_of(self.system)

    @cached_property
    def history(self) -> tuple[BaseMessage, ...]:
        """Earlier turns, without the system prompt."""
        earlier = self.messages[: max(0, self.asked_at)]
        return tuple(m for m in earlier if not isinstance(m, SystemMessage))

    @cached_property
    def earlier_requests(self) -> list[str]:
        """What the user said before the request, the latest last."""
        return [text_of(m) for m in self.history if isinstance(m, HumanMessage)]

    @property
    def before(self) -> str:
        """The last of these, as it stands in front of the request; empty where there is none."""
        return f"{self.earlier_requests[-1]}. " if self.earlier_requests else ""

    @cached_property
    def so_far(self) -> str:
        """What the user said of a matter while the assistant asked for what it lacked, as it stands in front of the
        request; empty where the assistant's last words asked for nothing that it lacked."""
        asks_for = tuple(
            phrase[: phrase.index("{")]
            for phrase in (self.phrases.needed, self.phrases.needed_one_of)
        )
        texts: list[str] = []
        is_asked_for = False
        for message in reversed(self.history):
            text = text_of(message)
            if isinstance(message, AIMessage) and text:
                is_asked_for = text.startswith(asks_for)
                if not is_asked_for:
                    break
            elif isinstance(message, HumanMessage) and is_asked_for:
                texts.insert(0, text)
                if not DOING.isdisjoint(words(text)):
                    break
        return "".join(f"{text}. " for text in texts)

    @cached_property
    def last_reply(self) -> str:
        """The assistant's last words before the request."""
        for message in reversed(self.history):
            if isinstance(message, AIMessage) and text_of(message):
                return text_of(message)
        return ""

    @cached_property
    def calls(self) -> dict[str, str]:
        """Tool call id -> name of the tool, for every call since the request, in their order."""
        calls: dict[str, str] = {}
        for message in self._since(AIMessage):
            for call in message.tool_calls:
                calls[str(call["id"])] = call["name"]
        return calls

    @property
    def arguments(self) -> list[dict[str, Any]]:
        """What each tool call since the request was made with, in their order."""
        arguments: list[dict[str, Any]] = []
        for message in self._since(AIMessage):
            arguments += [call["args"] for call in message.tool_calls]
        return arguments

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """What has come back since the request, in the order of the calls."""
        order = list(self.calls)
        ranked: list[tuple[int, Result]] = []
        for message in self._since(ToolMessage):
            text = _REFERENCES.sub("", text_of(message, READ_OF_RESULT))
            if text == SET_ASIDE:
                continue
            call_id = message.tool_call_id
            rank = order.index(call_id) if call_id in order else len(order)
            name = self.calls.get(call_id) or message.name or "that"
            result = Result(
                name,
                "" if text == NO_TEXT else text,
                failed=message.status == "error",
                label=self.label_of(name),
            )
            ranked.append((rank, result))
        return tuple(result for _, result in sorted(ranked, key=lambda pair: pair[0]))

    def label_of(self, tool: str) -> str:
        """Returns what people read in place of a tool's name: that of an agent's card, or its own words."""
        agent = tool.removeprefix("ask_")
        return self.names.get(agent) or spoken(agent)

    @property
    def left_out(self) -> tuple[Result, ...]:
        """What the prompt says was not asked: it is owned up to as the results of calls are."""
        lines = self.system.splitlines()
        debts = [line for line in lines if line.startswith((NOT_ASKED, FOR_NOBODY))]
        return tuple(Result("", line, failed=True) for line in debts)

    @property
    def open_question(self) -> str | None:
        """What to answer now, where the request only says to try again; None where it says something itself."""
        if not retries(self.request):
            return None
        for text in reversed(self.earlier_requests):
            if not retries(text):
                return text
        return None

    # What the prompt tells of the turn. The last place counts: blocks of a deck come before it.

    def _prompt_line(self, pattern: re.Pattern[str]) -> str:
        return (pattern.findall(self.system) or [""])[-1]

    @cached_property
    def referent(self) -> tuple[str, str, str] | None:
        """What the request means of the things shown: its title or id, its type, its id."""
        return (_REFERENT.findall(self.system) or [None])[-1]

    def names_thing(self, text: str) -> bool:
        """Whether a part of the request points at that thing, or says what kind of thing it is."""
        if self.referent is None:
            return False
        _, kind, _ = self.referent
        return kind in words(text) or REFERENCE.search(text) is not None

    @property
    def told_of_others(self) -> str:
        """What was said to others earlier in the conversation, as a sub-agent's prompt tells it."""
        return self._prompt_line(_CONTEXT)

    @property
    def one_thing(self) -> str:
        """The one thing that was told of last, by its id; of what others were told of, the first; else nothing."""
        # a long number may be a year or a price
        shown = {word for word in identifiers(self.last_reply) if not word.isdigit()}
        if len(shown) == 1:
            return shown.pop()
        first = ENTITY.search(self.told_of_others)
        if first is not None:
            return first[0]
        return ""

    @property
    def ids(self) -> list[str]:
        """Ids that the hand-off names: what the request is about."""
        return _NAME.findall(" ".join(_IDS.findall(self.system)))

    @property
    def picture_tool(self) -> str | None:
        """The tool the prompt names for such a picture."""
        shows = set(content(self.picture_text))
        for shown, tool in _PICTURED.findall(self.system):
            if shows.intersection(content(shown)):
                return tool
        return None

    @property
    def in_play(self) -> list[str]:
        """Tools called in the previous turn."""
        return _NAME.findall(self._prompt_line(_IN_PLAY))

    @property
    def unanswered(self) -> list[str]:
        """Tools whose question is still open."""
        return _NAME.findall(self._prompt_line(_OPEN))

    @property
    def role(self) -> str:
        """What this agent's own part is, where it holds the conversation and hands on what is not its part."""
        return self._prompt_line(_HOLDS)

    @property
    def in_turns(self) -> bool:
        """Whether tools are to be called one at a time, with a decision after each."""
        return "one tool at a time" in self.system

    @property
    def may_pass(self) -> bool:
        """Whether its prompt names a reply for requests that it has nothing on."""
        return NO_ANSWER in self.system

    @property
    def no_fit(self) -> str:
        """The tool to call when none fits; "none" or empty when none should be called."""
        return self._prompt_line(_NO_FIT)

    @property
    def previous_speakers(self) -> frozenset[str]:
        """Tools of the agents that have had the conversation in this turn."""
        return frozenset(f"ask_{agent}" for agent in _ALREADY.findall(self.system))

    @property
    def most_calls(self) -> int:
        """How many tools may be called."""
        return max(1, int(self._prompt_line(_AT_MOST) or 8))
