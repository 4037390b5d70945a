"""A model is called directly while nobody listens, and through LangChain's wrapper as soon as it
has something to do there."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import langchain_core.tracers.langchain
import langsmith.utils
import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.globals import set_debug, set_llm_cache
from langchain_core.language_models.fake_chat_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.load import dumps
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.rate_limiters import InMemoryRateLimiter
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.base import RunnableBinding
from langchain_core.tracers.context import collect_runs

from kit.models.asynchronous import AsyncChatModel
from kit.models.direct_call import has_listeners, stream_reply
from kit.models.json_routing import JsonRouting, NativeOrJson
from kit.models.message import human_text, system_text, tool_text
from kit.models.response_chain import Chained
from kit.models.scripted import Line, ScriptedModel

ASK: list[BaseMessage] = [HumanMessage("What is new?")]
both_modes = pytest.mark.parametrize("whole", [True, False], ids=["whole", "streaming"])


forget_environment: Any = getattr(langsmith.utils.get_env_var, "cache_clear")  # noqa: B009


class Listener(AsyncCallbackHandler):
    """Notes what LangChain tells a callback."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self.heard.append("start")

    async def on_llm_end(self, *args: Any, **kwargs: Any) -> None:
        self.heard.append("end")

    async def on_llm_error(self, *args: Any, **kwargs: Any) -> None:
        self.heard.append("error")


class Talkative(AsyncChatModel):
    """A model with all that a provider may add to a reply; `options` holds what it was called with."""

    options: list[dict[str, Any]] = []

    @property
    def _llm_type(self) -> str:
        return "talkative"

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        self.options.append(kwargs)
        message = AIMessage(content="Hello.", response_metadata={"id": "r1"})
        info = {"finish_reason": "stop", "lc_gateway_metadata": {"secret": 1}}
        return ChatResult(
            generations=[ChatGeneration(message=message, generation_info=info)],
            llm_output={"model_name": "m"},
        )

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        self.options.append(kwargs)
        yield ChatGenerationChunk(message=AIMessageChunk(content="Hel"))
        info = {"finish_reason": "stop", "lc_gateway_metadata": {"secret": 1}}
        message = AIMessageChunk(content="lo.", response_metadata={"id": "r1"})
        yield ChatGenerationChunk(message=message, generation_info=info)


async def read(model: Any, messages: list[BaseMessage] = ASK, **options: Any) -> list[Any]:
    return [chunk async for chunk in stream_reply(model, messages, **options)]


def plain(chunks: list[Any]) -> dict[str, Any]:
    """A whole reply without the id of its run."""
    message = (
        add_ai_message_chunks(chunks[0], *chunks[1:])
        if isinstance(chunks[0], AIMessageChunk)
        else chunks[0]
    )
    return message.model_dump(exclude={"id"})


def wrapped(chunks: list[Any]) -> bool:
    """Whether LangChain's wrapper was there: it names messages by their run."""
    return str(chunks[0].id).startswith("lc_run-")


def scripted(whole: bool, *lines: Line, **fields: Any) -> ScriptedModel:
    return ScriptedModel(
        *(lines or (Line("It is new.", pieces=["It is ", "new."]),) * 3),
        disable_streaming=whole,
        **fields,
    )


def models() -> Iterator[Any]:
    calls = [("ask_a", {"query": "x"}), ("ask_b", {"query": "y"})]
    line = Line("One moment.", calls=calls, pieces=["One ", "moment."], ids=["c1", "c2"])
    tool = {
        "type": "function",
        "function": {"name": "ask_a", "description": "News.", "parameters": {"type": "object"}},
    }
    for whole in (True, False):
        yield scripted(whole, line)
        yield scripted(whole, line).bind_tools([tool]).bind(stop=["."])
        yield Talkative(disable_streaming=whole)
        yield NativeOrJson(inner=scripted(whole, line), disable_streaming=whole).bind_tools([tool])
        yield JsonRouting(inner=Talkative(), disable_streaming=whole)
    yield FakeListChatModel(responses=["from a thread"])
    yield GenericFakeChatModel(messages=iter(["from a generator of a thread"]))


@pytest.mark.parametrize("at", range(len(list(models()))))
async def test_a_direct_reply_is_the_wrapped_one_without_the_id_of_a_run(at: int):
    direct = await read(list(models())[at])
    through = [chunk async for chunk in list(models())[at].astream(ASK)]
    assert wrapped(through) and not wrapped(direct)
    assert len(direct) == len(through)
    assert plain(direct) == plain(through)


async def heard_by(listener: Listener, chunks: Any) -> bool:
    """Whether a call went through the wrapper, which told the listener of its beginning and its end."""
    through = wrapped(await chunks)
    return through and listener.heard == ["start", "end"]


@both_modes
async def test_a_listener_gets_its_events_wherever_it_listens_and_also_when_it_comes_late(
    whole: bool,
):
    model = scripted(whole)
    assert not wrapped(await read(model.bind_tools([])))
    model.callbacks = [late := Listener()]
    assert await heard_by(late, read(model.bind_tools([])))
    bound, outer = Listener(), Listener()
    assert await heard_by(bound, read(scripted(whole).with_config(callbacks=[bound])))
    run: Any = RunnableLambda(lambda _: None, afunc=lambda _: read(scripted(whole)))
    assert await heard_by(outer, run.ainvoke(None, {"callbacks": [outer]}))
    assert not wrapped(await run.ainvoke(None)), "a run that nobody listens to is no listener"
    with collect_runs() as runs:
        assert wrapped(await read(scripted(whole)))
    assert len(runs.traced_runs) == 1
    around = Listener()
    await read(Chained(scripted(whole, callbacks=[around])))
    assert around.heard == ["start", "end"]


async def test_tracing_debug_and_verbose_bring_the_wrapper_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    set_debug(True)
    try:
        assert wrapped(await read(scripted(True)))
    finally:
        set_debug(False)
    capsys.readouterr()
    assert wrapped(await read(scripted(True, verbose=True)))
    monkeypatch.setattr(langchain_core.tracers.langchain, "get_client", object)
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        with monkeypatch.context() as environment:
            environment.setenv(name, "true")
            forget_environment()
            assert has_listeners(None, False), name
        forget_environment()
    assert not has_listeners(None, False)


@pytest.mark.parametrize("globally", [True, False])
async def test_a_cache_is_consulted(globally: bool):
    cache = InMemoryCache()
    model = scripted(True, cache=None if globally else cache)
    set_llm_cache(cache if globally else None)
    try:
        first, second = await read(model), await read(model)
        assert first[0].text == second[0].text == "It is new." and len(model.seen) == 1
        without = scripted(True, cache=False)
        assert not wrapped(await read(without)) and len(without.seen) == 1
    finally:
        set_llm_cache(None)


async def test_a_rate_limiter_and_content_blocks_stay_the_wrappers_work():
    limiter = InMemoryRateLimiter(requests_per_second=1e6, check_every_n_seconds=1e-3)
    assert wrapped(await read(scripted(True, rate_limiter=limiter)))
    assert wrapped(await read(scripted(True, output_version="v1")))
    audio: Any = [
        {"type": "audio", "source_type": "base64", "data": "AA==", "mime_type": "audio/wav"}
    ]
    model = scripted(True)
    assert wrapped(await read(model, [HumanMessage(content=audio)]))
    assert model.seen[0][0].content[0]["base64"] == "AA==", "an older block has been translated"  # type: ignore[index]


class OwnCall(ScriptedModel):
    async def ainvoke(self, *args: Any, **kwargs: Any) -> AIMessage:
        return AIMessage(content="its own call")


class OwnBinding(RunnableBinding[Any, Any]):
    async def astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        yield AIMessageChunk(content="its own binding")


async def test_whoever_runs_its_calls_another_way_is_called_that_way():
    assert (
        plain(await read(OwnCall(script=[], disable_streaming=True).bind(seed=1)))["content"]
        == "its own call"
    )
    assert plain(await read(OwnBinding(bound=scripted(False))))["content"] == "its own binding"
    assert wrapped(await read(scripted(True).with_retry())), (
        "a Runnable that is neither a chat model nor a binding of one"
    )
    patched = scripted(False)
    object.__setattr__(patched, "astream", OwnBinding(bound=scripted(False)).astream)
    assert plain(await read(patched))["content"] == "its own binding"


@pytest.mark.parametrize(
    ("made", "validated"),
    [
        (human_text("Hello?"), HumanMessage("Hello?")),
        (system_text("You answer."), SystemMessage("You answer.")),
        (
            tool_text("nothing", "c1", failed=True, name="look_up"),
            ToolMessage("nothing", tool_call_id="c1", name="look_up", status="error"),
        ),
    ],
    ids=["human", "system", "tool"],
)
def test_a_message_made_without_validation_is_the_one_that_langchain_makes(
    made: BaseMessage, validated: BaseMessage
):
    """Its attributes, those that count as given, and what becomes of it on the wire."""
    assert vars(made) == vars(validated) and made.model_fields_set >= validated.model_fields_set
    assert made.model_dump() == validated.model_dump() and dumps(made) == dumps(validated)
    made.additional_kwargs["own"] = 1
    assert not human_text("").additional_kwargs, "messages share nothing that can change"
