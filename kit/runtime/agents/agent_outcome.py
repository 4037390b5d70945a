"""What a sub-agent's last reply and its lookups come to: an answer with what it lacks, or a failure with its reason."""

from collections.abc import Collection, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.tool import ToolCall

from kit.core.outcome import (
    CUT,
    OF_MODEL,
    WITHOUT,
    AgentCall,
    Answer,
    Axis,
    ComponentPayload,
    Failure,
    Outcome,
    Reason,
)
from kit.core.value import builder
from kit.models.json_prose import prose
from kit.runtime.agents.contract import Breach, Contract, refusal, refusal_words
from kit.runtime.answer.clauses import is_general_advice, only_owns_up
from kit.runtime.answer.figures import numbers
from kit.runtime.answer.written_call import is_written_call
from kit.runtime.call_model import ModelReply
from kit.runtime.call_tool import lookup_key
from kit.tools.tool import ToolResult

Results = Sequence[tuple[ToolCall, ToolResult]]
"""Tool calls of one sub-agent, each with its result, in the order they were made."""
_new_answer = builder(Answer)


def outcome_of_reply(
    reply: ModelReply,
    results: Results,
    thread: Sequence[BaseMessage],
    contract: Contract,
    *,
    agent: str,
    call_id: str,
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

    def failed(
        reason: Reason, detail: str, suggestion: str | None = None, *, axis: Axis = "invocation"
    ) -> Failure:
        return Failure(
            call_id=call_id,
            agent=agent,
            axis=axis,
            reason=reason,
            detail=detail,
            suggestion=suggestion,
        )

    if declined := refusal(reply.message):
        return failed("refusal", declined, refusal_words(reply.message))
    # Handing over without a word is what a swarm's agent is asked to do.
    if not text and over is not None and not results:
        return Answer(call_id=call_id, agent=agent, text="", hands_to=over)
    lookups = [(tool_call, result) for tool_call, result in results if result.fault not in OF_MODEL]
    parts = answer_parts(lookups)
    components = (*parts["components"], *reply.components)
    # Whoever reads the answer, a model or a person, has to read that there is one.
    if not text and components and contract.validator is None:
        text = shown
    faults = [result for _, result in lookups if result.fault]
    nothing_came_back = bool(faults) and len(faults) == len(lookups)
    if faults:
        words = prose(text)
        is_made_up = nothing_came_back and _makes_up(words, thread)
        if not text or only_owns_up(words) or is_made_up:
            return failed(*data_reason(faults), axis="data")
    if not text:
        return failed("insufficient", "the model said nothing")
    if contract.validator is None and is_written_call(text, tools):
        return failed("contract_violation", "a tool call written as text")
    answer = contract.read(text)
    if isinstance(answer, Breach):
        return failed(answer.reason, answer.detail, answer.suggestion)
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
        call_id=call_id, agent=agent, text=words, confidence=confidence, hands_to=over, **parts
    )


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
