"""A request in the words of a trace: what is new in it since its agent's previous one, a line for each message."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.tool import ToolCall

from kit.core.bodies.call import PREFIX, ModelStarted, Purpose
from kit.core.limits import excerpt
from kit.core.value import builder
from kit.runtime.agents.handoff import PLACEHOLDER, hide, hide_words, texts_of
from kit.runtime.bound_model import BoundModel
from kit.runtime.context import RunContext
from kit.stores.model_request import CALL

_model_started = builder(ModelStarted)


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
    request, personal values hidden.

    `news` is how many messages an agent's first call adds to the conversation before them.
    """
    turn = ctx.turn
    head = messages[0]
    last = turn.threads[ctx.path]
    private = turn.private
    first = same = 1 if head.type == "system" else 0
    if not last:
        same = len(messages) - news
    else:
        for old, new in zip(last[first:], messages[first:], strict=False):
            if old is not new:
                break
            same += 1
    system = ""
    if first and (not last or last[0] is not head):
        if type(head.content) is str:
            system = head.content
        else:
            system = text_of(head)
        if model.prefix and system.startswith(model.prefix):
            system = PREFIX + system[len(model.prefix) :]
            turn.suffix, system = turn.suffix or system, PREFIX if system == turn.suffix else system
    lines: list[str] = []
    for message in messages[same:]:
        if message.type == "tool" and type(message.content) is str:
            lines.append(f"tool: {excerpt(message.content)}")
        elif message.type != "ai" and type(message.content) is str:
            lines.append(f"{message.type}: {message.content}")
        else:
            lines.append(_line(message, model.private))
    if private:
        system = hide_words(system, private)
        lines = hide(lines, private)
    return _model_started(
        agent=agent,
        model=model.spec.key,
        purpose=purpose,
        input=tuple(lines),
        before=same - first,
        system=system,
        instead_of=instead_of,
    )


def _line(message: BaseMessage, private: Mapping[str, frozenset[str]]) -> str:
    if isinstance(message, AIMessage):
        calls = message.tool_calls
    else:
        calls = ()
    return CALL.join(
        [f"{message.type}: {text_of(message)}", *[call_line(call, private) for call in calls]]
    )


def call_line(call: ToolCall, private: Mapping[str, frozenset[str]]) -> str:
    """Returns a call as a trace words it, its personal arguments hidden."""
    args = call["args"]
    if private and call["name"] in private:
        names = private[call["name"]]
        secrets: set[str] = set()
        for name in names:
            if name in args:
                for text in texts_of(args[name]):
                    secrets.add(text)
        args = {
            name: PLACEHOLDER if name in names else hide(value, secrets)
            for name, value in args.items()
        }
    return f"{call['name']}({args})"


def text_of(message: BaseMessage) -> str:
    """Returns the text of a message, whether its content is one or blocks."""
    content: Any = message.content
    if isinstance(content, str):
        return content
    return str(message.text)
