"""A request in the words of a trace: what is new in it since its agent's previous one, a line for each message."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.tool import ToolCall

from kit.core.bodies.call import PREFIX, ModelStarted, Purpose, RequestCall, RequestMessage
from kit.core.limits import excerpt
from kit.core.value import builder
from kit.runtime.agents.handoff import PLACEHOLDER, hide, hide_words, texts_of
from kit.runtime.bound_model import BoundModel
from kit.runtime.context import RunContext

_model_started = builder(ModelStarted)
_request_call = builder(RequestCall)
_request_message = builder(RequestMessage)


def opening(
    messages: Sequence[BaseMessage],
    model: BoundModel,
    ctx: RunContext,
    *,
    agent: str,
    purpose: Purpose,
    news: int,
    instead_of: str | None,
) -> ModelStarted:
    """Returns the first event of a model call, with what the trace does not have yet of its
    request, personal values trace_args.

    `news` is how many messages an agent's first call adds to the conversation before them.
    """
    turn = ctx.turn
    head = messages[0]
    last = turn.threads[ctx.path]
    private = turn.private
    first = 0
    if head.type == "system":
        first = 1
    repeated = first
    if not last:
        repeated = len(messages) - news
    else:
        # By identity: a thread keeps its messages, and comparing long texts costs more than the call.
        for old, new in zip(last[first:], messages[first:], strict=False):
            if old is not new:
                break
            repeated += 1
    system = ""
    if first and (not last or last[0] is not head):
        system = text_of(head)
        if model.prefix and system.startswith(model.prefix):
            system = PREFIX + system[len(model.prefix) :]
            # What follows the prompt is the same in most calls of a turn, and stands in the first.
            if system == turn.suffix:
                system = PREFIX
            turn.suffix = turn.suffix or system
    if private:
        system = hide_words(system, private)
    input = tuple([_traced(message, model.private, private) for message in messages[repeated:]])
    return _model_started(
        agent=agent,
        model=model.spec.key,
        purpose=purpose,
        input=input,
        before=repeated - first,
        system=system,
        instead_of=instead_of,
    )


def _traced(
    message: BaseMessage, personal: Mapping[str, frozenset[str]], private: Collection[str]
) -> RequestMessage:
    """Returns a message as a trace keeps it: a long result by its beginning, personal values trace_args."""
    text = text_of(message)
    calls: tuple[RequestCall, ...] = ()
    if message.type == "tool":
        text = excerpt(text)
    elif isinstance(message, AIMessage) and message.tool_calls:
        calls = traced_calls(message.tool_calls, personal, private)
    if private:
        text = hide(text, private)
    return _request_message(role=message.type, text=text, calls=calls)


def traced_calls(
    calls: Sequence[ToolCall], personal: Mapping[str, frozenset[str]], private: Collection[str]
) -> tuple[RequestCall, ...]:
    """Returns calls as a trace keeps them.

    `personal` names the arguments of each tool that no trace shows, `private` are the values that crossed
    a hand-off before.
    """
    traced: list[RequestCall] = []
    for call in calls:
        args = call["args"]
        if call["name"] in personal:
            names = personal[call["name"]]
            secrets: set[str] = set()
            for name in names:
                if name in args:
                    secrets.update(texts_of(args[name]))
            trace_args: dict[str, Any] = {}
            for name, value in args.items():
                if name in names:
                    trace_args[name] = PLACEHOLDER
                else:
                    trace_args[name] = hide(value, secrets)
            args = trace_args
        if private:
            args = hide(args, private)
        traced.append(_request_call(name=call["name"], args=args))
    return tuple(traced)


def text_of(message: BaseMessage) -> str:
    """Returns the text of a message, whether its content is one or blocks."""
    content: Any = message.content
    if isinstance(content, str):
        return content
    return str(message.text)
