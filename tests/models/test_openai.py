"""Real chat models over a loopback server: what is sent, what comes back, and what goes wrong."""

import asyncio
import threading
from contextlib import aclosing
from typing import Any, cast

import pytest
from langchain_core.language_models import BaseChatModel

from kit.core.card import Tuning
from kit.core.model import ModelSpec
from kit.models.openai import NO_KEY, chat_model
from tests.loopback_openai import Loopback, Say
from tests.models.test_json_routing import TOOLS

pytestmark = pytest.mark.realtime

KEY = "sk-loopback-4711-secret"


def spec(**fields: Any) -> ModelSpec:
    return ModelSpec(key="stub", provider="openai", **fields)


def model_at(server: Loopback, *, tuning: Tuning | None = None, **fields: Any) -> BaseChatModel:
    return chat_model(spec(**fields), api_key=KEY, base_url=server.url, tuning=tuning)


async def test_effort_verbosity_and_length_are_sent_where_given(server: Loopback):
    server.plays(Say(["a"]), Say(["b"]), Say(["c"]))
    tuning = Tuning(max_output_tokens=50, text_verbosity="low")
    await model_at(server, name="gpt-5.4-nano", effort="none", tuning=tuning).ainvoke("hi")
    own = Tuning(reasoning_effort="low", text_verbosity="low")
    await model_at(server, effort="none", api="responses", tuning=own).ainvoke("hi")
    await model_at(server).ainvoke("hi")
    chat, responses, bare = server.requests
    assert chat["model"] == "gpt-5.4-nano"
    assert (chat["reasoning_effort"], chat["verbosity"]) == ("none", "low")
    assert 50 in (chat.get("max_tokens"), chat.get("max_completion_tokens"))
    assert (responses["reasoning"], responses["text"]) == ({"effort": "low"}, {"verbosity": "low"})
    assert not {"reasoning_effort", "verbosity", "max_tokens", "max_completion_tokens"} & set(bare)


def test_two_event_loops_in_a_row_can_use_one_model(server: Loopback):
    server.plays(*[Say(["fine"])] * 3)
    model = model_at(server)
    for _ in range(3):
        assert asyncio.run(model.ainvoke("hi")).text == "fine"


async def test_concurrent_calls_share_one_model(server: Loopback):
    all_eight = threading.Barrier(8)  # one after another, the first would wait for ever
    server.plays(*[Say(["fine"], together=all_eight)] * 8)
    model = model_at(server)
    replies = await asyncio.gather(*[model.ainvoke("hi") for _ in range(8)])
    assert [reply.text for reply in replies] == ["fine"] * 8


async def test_leaving_a_stream_hangs_up_on_the_server(server: Loopback):
    server.plays(Say(["word "] * 200, drip=0.02))
    async with aclosing(cast("Any", model_at(server).bind_tools(TOOLS).astream("hi"))) as stream:
        async for chunk in stream:
            if chunk.text:
                break
    assert await asyncio.to_thread(server.hung_up.wait, 10)


async def test_a_key_is_not_sent_to_an_endpoint_it_does_not_belong_to(server: Loopback):
    server.plays(Say(["a"]), Say(["b"]), Say(["c"]))
    await chat_model(spec(base_url=server.url), api_key=KEY).ainvoke("hi")
    await chat_model(
        spec(base_url=server.url), api_key=KEY, base_url="https://elsewhere.example/v1"
    ).ainvoke("hi")
    await chat_model(spec(base_url=server.url + "/"), api_key=KEY, base_url=server.url).ainvoke(
        "hi"
    )
    assert server.bearers == [NO_KEY, NO_KEY, KEY]
