"""Models that are awaited only: a turn runs on one loop, which a blocking call would stop."""

from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import Runnable, RunnableConfig

from kit.models.message import whole_message

ADVICE = "this model is asynchronous: use ainvoke or astream"


class AsyncModel(Runnable[Any, AIMessage]):
    """A model that is not built on LangChain's; raises NotImplementedError where it is called without await."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        raise NotImplementedError(ADVICE)

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AIMessage:
        return whole_message([chunk async for chunk in self.astream(input, config, **kwargs)])


class AsyncChatModel(BaseChatModel):
    """A chat model of LangChain's kind; raises NotImplementedError where it is called without await."""

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError(ADVICE)
