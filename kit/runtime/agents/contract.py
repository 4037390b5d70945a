"""What a sub-agent's last reply comes to: an answer with what it lacks, or a failure with its reason.

To count as an answer it must be no refusal, have its declared shape, and be sure enough.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.tool import ToolCall

from kit.compose.answer_schema import answer_validator
from kit.core.card import AgentCard
from kit.core.language.machine_error import is_machine_error
from kit.core.limits import excess, read_json
from kit.core.outcome import (
    CUT,
    NO_ANSWER,
    OF_MODEL,
    WITHOUT,
    AgentCall,
    Answer,
    ComponentPayload,
    Outcome,
    Reason,
)
from kit.core.schema.json_value import is_list, is_object
from kit.core.schema.validator import Validator
from kit.core.value import builder
from kit.models.json_prose import prose
from kit.runtime.answer.clauses import (
    is_general_advice,
    numbers,
    only_owns_up,
    only_refuses,
)
from kit.runtime.answer.raw_text import OWN_WORDS, is_written_call, only_repeats
from kit.runtime.call_model import ModelReply
from kit.runtime.call_tool import lookup_key
from kit.tools.tool import ToolResult

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
        answer, nor is the error of a machine. A closed agent may not ask the user: a reply of
        questions alone, in prose or in the fields of a schema, is low confidence, and the parent
        decides. Replies that say anything beside the question stand; agents that talk with the user
        over turns do not close their hand-off.
        """
        words = prose(text) if text.startswith("{") else text
        if text.startswith(NO_ANSWER) or only_refuses(words):
            return Breach("unanswerable", "the model says that it has no answer")
        if is_machine_error(text):
            return Breach("unavailable", f"an error as its text: {text}")
        if OWN_WORDS.search(text) is not None and only_repeats(text):
            return Breach("unanswerable", "it only hands on what the kit told the model")
        if self.closed and only_asks(words):
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
        fields = value if is_object(value) else {}
        if fields.get("answered") is False or fields.get("refusal"):
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


@dataclass(frozen=True, slots=True)
class Refusal:
    """How a model or its provider declined."""

    detail: str
    words: str | None = None
    """In which the model declined; None where it gave none."""


def refusal(message: AIMessage) -> Refusal | None:
    """Returns how a model or its provider declined; None when neither did."""
    words = message.additional_kwargs.get("refusal")
    is_refused = False
    if not isinstance(message.content, str):
        for block in message.content:
            if is_object(block) and block.get("type") == "refusal":
                is_refused = True
                words = words or block.get("refusal")
    if words:
        return Refusal(str(words), str(words))
    facts: Any = message.response_metadata
    ending = facts.get("finish_reason") or facts.get("stop_reason")
    if ending in ("content_filter", "refusal"):
        return Refusal(f"finish reason {ending}")
    if is_refused:
        return Refusal("refused")
    return None


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
    if is_object(value):
        own_level = value.get("confidence")
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
    if is_object(value):
        for key, item in value.items():
            if key == "confidence" and isinstance(item, str | int | float):
                yield item
            else:
                yield from _nested(item)
    elif is_list(value):
        for item in value:
            yield from _nested(item)


Results = Sequence[tuple[ToolCall, ToolResult]]
"""Tool calls of one sub-agent, each with its result, in the order they were made."""
_new_answer = builder(Answer)


def outcome_of_reply(
    reply: ModelReply,
    results: Results,
    thread: Sequence[BaseMessage],
    contract: Contract,
    call: AgentCall,
    *,
    shown: str = "",
    tools: Collection[str] = (),
    over: AgentCall | None = None,
) -> Outcome:
    """Returns the outcome of a reply without further calls; `over` is the call by which it hands
    the conversation on.

    Components are an answer: an agent that shows some and says nothing is given the words `shown`, so that whoever
    reads its answer, a model or a person, reads that there is one. A call of one of `tools` that stands in the text
    is none.

    Words survive failed lookups (decisions 31). They count for nothing where they only own up, and
    where none of the lookups came back and they give a figure that the model has read nowhere in
    `thread`.
    """
    text = reply.text.strip()
    if declined := refusal(reply.message):
        return call.failed("refusal", declined.detail, declined.words)
    # Handing over without a word is what a swarm's agent is asked to do.
    if not text and over is not None and not results:
        return call.answered("").replace(hands_to=over)
    lookups = _lookups(results)
    parts = answer_parts(lookups)
    components = (*parts["components"], *reply.components)
    # Whoever reads the answer, a model or a person, has to read that there is one.
    if not text and components and contract.validator is None:
        text = shown
    faults = [result for _, result in lookups if result.fault]
    nothing_came_back = 0 < len(faults) == len(lookups)
    if faults:
        words = prose(text)
        # What a model is told of a call that failed is no answer, though it passes it on.
        passes_on = any(result.text in words for result in faults)
        is_unfounded = nothing_came_back and (passes_on or _makes_up(words, thread))
        if not text or only_owns_up(words) or is_unfounded:
            reason, detail = data_reason(faults)
            return call.failed(reason, detail, axis="invocation" if reason in OF_MODEL else "data")
    if not text:
        return call.failed("insufficient", "the model said nothing")
    if contract.validator is None and is_written_call(text, tools):
        return call.failed("contract_violation", "a tool call written as text")
    answer = contract.read(text)
    if isinstance(answer, Breach):
        return call.failed(answer.reason, answer.detail, answer.suggestion)
    words, confidence = answer
    caveats = [parts["caveat"]]
    if nothing_came_back:
        caveats.append(WITHOUT)
    if reply.truncated:
        caveats.append(CUT)
    parts |= {
        "caveat": " ".join(filter(None, caveats)) or None,
        "truncated": reply.truncated,
        "components": components,
    }
    return _new_answer(
        call_id=call.call_id,
        agent=call.agent,
        text=words,
        confidence=confidence,
        hands_to=over,
        **parts,
    )


def _lookups(results: Results) -> Results:
    """Returns the calls that looked something up, whatever came of it."""
    lookups: list[tuple[ToolCall, ToolResult]] = []
    unread: list[tuple[ToolCall, ToolResult]] = []
    for tool_call, result in results:
        if result.fault not in OF_MODEL:
            lookups.append((tool_call, result))
        elif result.fault == "bad_arguments":
            unread.append((tool_call, result))
    # A model that made no call that could be read has looked up nothing of what it then says.
    return lookups or unread


def answer_parts(lookups: Results) -> dict[str, Any]:
    """Returns the fields of an answer that its lookups decide; what was chosen by render_* calls is
    shown, and nothing else."""
    chosen: list[ComponentPayload] = []
    found: list[ComponentPayload] = []
    caveats: dict[str, None] = {}
    faults: list[str] = []
    for call, result in lookups:
        found += result.components
        if call["name"].startswith("render_"):
            chosen += result.components
        if result.caveat:
            caveats[result.caveat] = None
        if result.fault:
            faults.append(str(result.fault))
    return {
        "components": tuple(chosen or found),
        "caveat": " ".join(caveats) or None,
        "data_faults": tuple(faults),
        "recovered": bool(faults) and _has_recovered(lookups),
    }


def data_reason(faults: Sequence[ToolResult]) -> tuple[Reason, str]:
    """Returns why data failed, as a reason and in detail; a foreign principal's reply outweighs the rest."""
    reasons: list[Reason] = []
    details: list[str] = []
    for result in faults:
        if result.fault:
            reasons.append(result.fault)
        details.append(f"{result.fault}: {result.detail}")
    detail = "; ".join(details)
    if "principal_mismatch" in reasons:
        return "principal_mismatch", detail
    return reasons[0], detail


def _has_recovered(lookups: Results) -> bool:
    """Whether every lookup that failed was made again, with the same arguments, and then answered."""
    faults: dict[str, str | None] = {}
    for call, result in lookups:
        faults[lookup_key(call)] = result.fault
    return not any(faults.values())


def _makes_up(text: str, thread: Sequence[BaseMessage]) -> bool:
    """Whether a text gives a figure that its model has read nowhere, other than as general advice."""
    texts: list[str] = []
    for message in thread:
        # what it wrote beside its own calls is no source
        if not (isinstance(message, AIMessage) and message.tool_calls):
            texts.append(str(message.text))
    invented = numbers(text) - numbers("\n".join(texts))
    return bool(invented) and not is_general_advice(text, invented)
