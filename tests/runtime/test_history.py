"""A stored line becomes a message once, and nobody changes that message."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage

from kit.core.model import ModelSpec
from kit.core.record import Message
from kit.models.direct_call import stream_reply
from kit.models.faulty import FaultyModel
from kit.models.json_routing import JsonRouting, NativeOrJson
from kit.models.offline.model import OfflineModel
from kit.models.openai import chat_model
from kit.models.response_chain import Chained
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.memory import messages_of
from tests.loopback_openai import Say, loopback


def lines(count: int, conversation: str = "t") -> list[Message]:
    """A conversation as a caller hands it in: values of its own, made anew."""
    return [
        Message(
            turn_id=f"{conversation}{n // 2}",
            role="assistant" if n % 2 else "user",
            text=f"line {n}",
        )
        for n in range(count)
    ]


class Listener(AsyncCallbackHandler):
    """Brings LangChain's wrapper back."""


def scripted(**fields: Any) -> ScriptedModel:
    return ScriptedModel(Line("Said."), **fields)


MODELS: dict[str, Callable[[], Any]] = {
    "direct": scripted,
    "whole": lambda: scripted(disable_streaming=True),
    "wrapper": lambda: scripted(callbacks=[Listener()]),
    "offline": lambda: OfflineModel().paced(0),
    "json": lambda: JsonRouting(inner=ScriptedModel('{"say": "Said.", "calls": []}')),
    "native or json": lambda: NativeOrJson(inner=scripted()),
    "chained": lambda: Chained(scripted()),
    "faulty": lambda: FaultyModel("a", scripted()),
}


@pytest.mark.parametrize("name", MODELS)
async def test_no_model_changes_a_message_it_is_given(name: str):
    await assert_unchanged(MODELS[name]())


@pytest.mark.realtime
@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_no_provider_changes_a_message_it_is_given(api: Any):
    with loopback() as server:
        server.plays(Say(["Said."]))
        await assert_unchanged(
            chat_model(
                ModelSpec(key="m", provider="openai", api=api), api_key="k", base_url=server.url
            )
        )


async def assert_unchanged(model: BaseChatModel) -> None:
    history = [
        *lines(6),
        Message(turn_id="t3", role="assistant", text="line 7", response_id="resp_1"),
    ]
    shared = messages_of(history)
    expected = [message.model_dump() for message in shared]
    thread = [SystemMessage("Answer."), *shared, HumanMessage("And now?")]
    assert [chunk async for chunk in stream_reply(model, thread)]
    assert [message.model_dump() for message in messages_of(history)] == expected
    assert all(a is b for a, b in zip(shared, messages_of(history), strict=True))
