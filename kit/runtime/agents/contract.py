"""What a sub-agent's reply must be to count as its answer: no refusal, its declared shape, sure enough."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AIMessage

from kit.compose.answer_schema import answer_validator
from kit.core.card import AgentCard
from kit.core.limits import excess, read_json
from kit.core.outcome import NO_ANSWER, Reason
from kit.core.schema.validator import Validator
from kit.models.json_prose import prose
from kit.runtime.answer.clauses import only_refuses

_FENCE = re.compile(r"\A```(?:json)?\s*(.*?)\s*```\Z", re.DOTALL)
_WORDS = {"low": 0.0, "medium": 0.5, "high": 1.0}
_SENTENCE = re.compile(r"[^.!?…]+[.!?…]*")
_REQUEST = re.compile(
    r"\?\s*$|^\W*(?:please|kindly) (?:tell|say|name|specify|clarify|provide|give|confirm|share|"
    r"choose|pick)\b|\b(?:tell|let) me "
    r"(?:know )?(?:which|what|who|whether|if|more|the)\b|^\W*(?:i|we)(?: would|['’]d)? need "
    r"(?:to know|more|the|a|your)\b",
    re.I,
)
"""A sentence that wants something of the user."""


@dataclass(frozen=True, slots=True)
class Breach:
    """Why a reply is no answer."""

    reason: Reason
    detail: str
    suggestion: str | None = None


@dataclass(frozen=True, slots=True)
class Contract:
    """The output half of a card's hand-off, compiled once at bind."""

    validator: Validator | None = None
    min_confidence: float | None = None
    closed: bool = False

    @property
    def strict(self) -> bool:
        """Whether a reply must be read whole before any of it counts."""
        return self.closed or self.validator is not None

    def read(self, text: str) -> tuple[str, float | None] | Breach:
        """The reply as an answer, its text and how sure it is, or why it is none.

        What the model reports itself goes first: NO_ANSWER, `"answered": false` or a `"refusal"` in
        a structured reply. Then plain rules over English prose: words that only refuse are no
        answer. A closed agent may not ask the user: a reply of questions alone, in prose or in the
        fields of a schema, is low confidence, and the parent decides. Replies that say anything
        beside the question stand; agents that talk with the user over turns do not close their
        hand-off.
        """
        if text.startswith(NO_ANSWER) or only_refuses(prose(text)):
            return Breach("unanswerable", "the model says that it has no answer")
        if self.closed and only_asks(prose(text)):
            return Breach("low_confidence", "a question to the user instead of an answer", text)
        if self.validator is None:
            return text, None
        text = _FENCE.sub(r"\1", text)
        try:
            value = read_json(text)
        except ValueError as error:
            return Breach("contract_violation", f"not JSON: {error}")
        if problem := excess(value):
            return Breach("contract_violation", f"it holds {problem}")
        if isinstance(value, dict) and (value.get("answered") is False or value.get("refusal")):  # type: ignore[reportUnknownMemberType]
            return Breach("unanswerable", "the model reports that it did not answer")
        if wrong := self.validator.wrong(value):
            return Breach("contract_violation", wrong)
        confidence, word = _confidence(value)
        least = self.min_confidence
        if word == "low" or (confidence is not None and least is not None and confidence < least):
            return Breach(
                "low_confidence", f"confidence {word or confidence}, at least {least} asked", text
            )
        return text, confidence


def contract_of(card: AgentCard) -> Contract:
    """Compiles what a card says about its answers."""
    schema = card.handoff.output_schema
    if schema is None:
        return Contract(closed=card.handoff.closed)
    return Contract(answer_validator(schema), card.handoff.min_confidence, card.handoff.closed)


def refusal(message: AIMessage) -> str | None:
    """Returns how a model or its provider declined, in its words where it gave any; None when neither did."""
    words = refusal_words(message)
    if words is not None:
        return words
    ending: Any = message.response_metadata.get("finish_reason") or message.response_metadata.get(
        "stop_reason"
    )
    if ending in ("content_filter", "refusal"):
        return f"finish reason {ending}"
    if not isinstance(message.content, str) and _refusal_blocks(message):
        return "refused"
    return None


def refusal_words(message: AIMessage) -> str | None:
    """Returns the words in which a model declined; None where it did not, or without a word."""
    words = message.additional_kwargs.get("refusal")
    if words:
        return str(words)
    # nearly every message
    if isinstance(message.content, str):
        return None
    for block in _refusal_blocks(message):
        if block.get("refusal"):
            return str(block["refusal"])
    return None


def _refusal_blocks(message: AIMessage) -> list[dict[str, Any]]:
    if isinstance(message.content, str):
        return []
    blocks: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, dict):
            fields = cast("dict[str, Any]", block)
            if fields.get("type") == "refusal":
                blocks.append(fields)
    return blocks


def only_asks(text: str) -> bool:
    """Whether a text is questions and nothing else; a word or two of courtesy before them do not count."""
    has_request = False
    for sentence in map(str.strip, _SENTENCE.findall(text)):
        is_courtesy = sentence.endswith("!") and len(sentence.split()) <= 2
        if _REQUEST.search(sentence):
            has_request = True
        elif sentence and not is_courtesy:
            return False
    return has_request


def _confidence(value: Any) -> tuple[float | None, str | None]:
    """Returns how sure an answer is, as a number and as the word it used: its own `confidence`,
    else its least sure item's."""
    levels: list[float | str] = []
    if isinstance(value, Mapping):
        own_level = cast("Mapping[str, Any]", value).get("confidence")
        if isinstance(own_level, str | int | float):
            levels = [own_level]
    if not levels:
        levels = list(_nested(value))
    least: tuple[float | None, str | None] = (None, None)
    for level in levels:
        word = level if isinstance(level, str) else None
        rating = _WORDS.get(level, 0.0) if isinstance(level, str) else float(level)
        if least[0] is None or rating < least[0]:
            least = (rating, word)
    return least


def _nested(value: Any) -> Iterator[float | str]:
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            if key == "confidence" and isinstance(item, str | int | float):
                yield item
            else:
                yield from _nested(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _nested(item)
