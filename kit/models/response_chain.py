"""Continues a conversation by `previous_response_id`, or from all its messages where the provider
has lost that response."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig

from kit.models.asynchronous import AsyncModel
from kit.models.direct_call import stream_reply


class Chained(AsyncModel):
    """A model of the Responses API: where the newest answer before the request names a response,
    earlier turns stay home.

    When the provider refuses that response, before anything was said, it is asked again with every message.
    """

    def __init__(self, inner: Runnable[Any, Any]):
        self.inner = inner

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        messages, previous = chain(input)
        has_output = False
        if previous is not None:
            try:
                async for chunk in stream_reply(
                    self.inner, messages, config, previous_response_id=previous, **kwargs
                ):
                    has_output = True
                    yield chunk
                return
            except Exception as error:
                # Once something was said, a second answer would be said after it.
                if has_output or not forgotten(error):
                    raise
        async for chunk in stream_reply(self.inner, input, config, **kwargs):
            yield chunk


def chain(messages: Sequence[BaseMessage]) -> tuple[Sequence[BaseMessage], str | None]:
    """What is to be sent, and the response it continues: the prompt and the request on, without the
    turns before it.

    Only an answer from before the request counts: within a turn every message is sent, so that no
    call depends on another.
    """
    request = 0
    for index, message in enumerate(messages):
        if isinstance(message, HumanMessage):
            request = index
    answer = messages[request - 1] if request else None
    if not isinstance(answer, AIMessage) or not answer.response_metadata.get("id"):
        return messages, None
    # The provider keeps the turns of a chain, and no instructions of it.
    prompt = [message for message in messages[:request] if isinstance(message, SystemMessage)]
    return [*prompt, *messages[request:]], str(answer.response_metadata["id"])


def forgotten(error: BaseException) -> bool:
    """Whether a provider says that it does not know the response any more."""
    message = f"{getattr(error, 'code', '')} {error}".lower()
    return "previous_response" in message or (
        "previous response" in message and "not found" in message
    )
