"""Continuity with services that remember for us: a provider's response chains, the support service's conversations."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
)
from langchain_core.runnables import Runnable, RunnableConfig

from kit.core.context import InheritedContext, Principal
from kit.core.errors import StoreError
from kit.core.model import ModelSpec
from kit.core.record import Message, Note
from kit.models.openai import chat_model
from kit.models.response_chain import Chained
from kit.models.scripted import Line
from kit.runtime.agents.llm_agent import LLMAgent
from kit.runtime.bound_model import BoundModel
from kit.runtime.turn import run_turn
from kit.stores.sqlite import SqliteStore
from kit.tools.tool import ToolContext, within
from kit.worlds.consumer.support import (
    Closed,
    Conversations,
    Fragment,
    Opened,
    SupportQuestion,
    support_tool,
)
from tests.kits import ALICE, SmallKit, answering, asks, routing, small_kit
from tests.loopback_openai import Refuse, Say, loopback
from tests.sample_turn import a_turn

MINUTES_55, DAYS_29 = 55 * 60.0, 29 * 24 * 3600.0

# Response chains


class Provider(Runnable[Any, Any]):
    """A provider that remembers every response; `asked` is (previous id, messages)."""

    def __init__(self, name: str, line: Callable[[list[BaseMessage]], Line]):
        self.label, self.line = name, line
        self.asked: list[tuple[str | None, list[BaseMessage]]] = []

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        previous = kwargs.get("previous_response_id")
        self.asked.append((previous, list(input)))
        await asyncio.sleep(0)
        line = self.line(list(input))
        key = f"resp_{self.label}_{len(self.asked)}"
        told: dict[str, Any] = {"response_metadata": {"id": key, "status": "completed"}}
        yield (
            AIMessage(line.text, tool_calls=line.tool_calls(), **told)
            if line.calls
            else AIMessageChunk(content=line.text, **told)
        )


def chained(name: str, line: Callable[[list[BaseMessage]], Line], kit: SmallKit) -> Provider:
    agent = kit.team.agents[name]
    assert isinstance(agent, LLMAgent)
    provider = Provider(name, line)
    spec = ModelSpec(key="chained", provider="openai", api="responses")
    kit.team = kit.team.with_agents(
        {name: replace(agent, model=BoundModel(spec, Chained(provider)))}
    )
    return provider


def chained_kit() -> tuple[SmallKit, Provider, Provider, Provider]:
    kit = small_kit([], {"ann": answering(""), "bob": answering("")})

    def route(request: str) -> Line:
        return asks(*[name for name in ("ann", "bob") if name in request], query="your part")

    return (
        kit,
        chained("orchestrator", routing(route), kit),
        chained("ann", lambda _: Line("Ann says."), kit),
        chained("bob", lambda _: Line("Bob says."), kit),
    )


@pytest.mark.req("SAT-15")
async def test_each_agent_continues_its_own_chain_and_sends_only_what_is_new():
    kit, lead, ann, bob = chained_kit()
    await run_turn("ann", ALICE, kit)
    await run_turn("bob", ALICE, kit)
    await run_turn("ann and bob", ALICE, kit)
    assert [previous for previous, _ in ann.asked] == [None, "resp_ann_1"]
    assert [previous for previous, _ in bob.asked] == [None, "resp_bob_1"]
    assert [previous for previous, _ in lead.asked[::2]] == [
        None,
        "resp_orchestrator_2",
        "resp_orchestrator_4",
    ]
    assert [type(message) for message in ann.asked[1][1]] == [SystemMessage, HumanMessage]
    stranger = ALICE.model_copy(update={"id": "another"})
    await run_turn("ann", stranger, kit)
    assert ann.asked[-1][0] is None and lead.asked[-2][0] is None


async def test_a_chain_that_does_not_hold_every_turn_told_is_not_continued():
    kit, _, ann, _ = chained_kit()
    await run_turn("ann", ALICE, kit)
    both = [run_turn("ann", ALICE, kit), run_turn("ann", ALICE, kit)]
    await asyncio.gather(*both)
    await run_turn("ann", ALICE, kit)
    assert [previous for previous, _ in ann.asked] == [None, "resp_ann_1", "resp_ann_1", None]
    assert len(ann.asked[3][1]) == 8


@pytest.mark.req("SAT-15")
@pytest.mark.parametrize(
    ("seconds", "previous"), [(DAYS_29 - 60, "resp_ann_1"), (DAYS_29 + 60, None)]
)
async def test_a_chain_is_continued_for_29_days_a_day_before_providers_forget(
    seconds: float, previous: str | None
):
    kit, _, ann, _ = chained_kit()
    await run_turn("ann", ALICE, kit)
    note = kit.store.note(ALICE.key, "chain:ann")
    assert note is not None
    kit.store.keep_note(ALICE.key, "chain:ann", note.model_copy(update={"at": note.at - seconds}))
    await run_turn("ann", ALICE, kit)
    assert ann.asked[-1][0] == previous


@pytest.mark.req("SAT-15")
async def test_a_chain_whose_last_words_the_user_never_read_is_not_continued():
    kit, lead, ann, bob = chained_kit()
    bob.line = lambda _: (_ for _ in ()).throw(ConnectionError("503"))
    lead.line = lambda m: (
        Line("Ann says.") if m[-1].type == "tool" else asks("ann", "bob", query="your part")
    )
    first = await run_turn("ann and bob", ALICE, kit)
    assert first.text.startswith("Ann says.") and "answer about bob" in first.text
    asked = len(lead.asked)
    await run_turn("ann and bob", ALICE, kit)
    assert lead.asked[asked][0] is None, "the provider remembers words without the apology"
    assert ann.asked[-1][0] == "resp_ann_1"


@pytest.mark.realtime
@pytest.mark.req("SAT-15")
@pytest.mark.parametrize("streaming", [True, False])
async def test_the_real_client_sends_the_previous_response_and_asks_again_when_it_is_gone(
    streaming: bool,
):
    spec = ModelSpec(key="stub", provider="openai", api="responses")
    with loopback() as server:
        server.plays(
            Say(["First."]),
            Refuse(400, "Previous response with id 'resp_9' not found."),
            Say(["Again."]),
        )
        model = Chained(chat_model(spec, api_key="k", base_url=server.url))
        known = AIMessage("Earlier.", response_metadata={"id": "resp_9"})
        thread = [SystemMessage("Be brief."), HumanMessage("one"), known, HumanMessage("two")]
        for expected in ("First.", "Again."):
            if streaming:
                chunks = [chunk async for chunk in model.astream(thread)]
                assert "".join(str(chunk.text) for chunk in chunks) == expected
            else:
                assert (await model.ainvoke(thread)).text == expected
    assert [request.get("previous_response_id") for request in server.requests] == [
        "resp_9",
        "resp_9",
        None,
    ]
    assert [len(request["input"]) for request in server.requests] == [2, 2, 4]


# Support conversations


class Upstream:
    """A support service that gives out numbered conversations and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[SupportQuestion] = []

    async def ask(
        self, question: SupportQuestion
    ) -> AsyncGenerator[Opened | Fragment | Closed, None]:
        self.asked.append(question)
        yield Opened(conversation_id=question.conversation_id or f"sc-{len(self.asked)}")
        yield Fragment(text="Try again.")
        yield Closed()


def asker(
    store: SqliteStore | Any, clock: Callable[[], float]
) -> tuple[Upstream, Callable[..., Any]]:
    upstream = Upstream()
    tool = support_tool("support", upstream, {}, Conversations(store, clock))

    async def ask(
        query: str, session: str = "e1", prior: str | None = None, user: str = "alice"
    ) -> SupportQuestion:
        principal = Principal(tenant_id="acme", user_id=user)
        inherited = InheritedContext(
            principal=principal, episode_id=session, locale="en", prior_context=prior
        )
        with within(
            ToolContext(agent="support", turn_id="t", inherited=inherited, emit=lambda _: None)
        ):
            await tool.ainvoke(
                {"type": "tool_call", "name": "support", "args": {"query": query}, "id": "c"}
            )
        return upstream.asked[-1]

    return upstream, ask


@pytest.mark.req("SAT-9")
async def test_a_support_conversation_lasts_55_minutes_across_processes_and_belongs_to_episode_and_owner(
    tmp_path: Path,
):
    now = 1000.0
    for step, (later, expected) in enumerate(
        [
            (0.0, None),
            (MINUTES_55, "sc-1"),
            (MINUTES_55 - 1, "sc-1"),
            (MINUTES_55 + 1, None),
            (5.0, "sc-1"),
        ]
    ):
        now += later
        store = SqliteStore(tmp_path / "kit.db")
        _, ask = asker(store, lambda now=now: now)
        assert (await ask("it does not scan")).conversation_id == expected, step
        assert (await ask("and mine?", session=f"other-{step}")).conversation_id is None
        assert (await ask("and mine?", user=f"mallory-{step}")).conversation_id is None
        store.close()


@pytest.mark.req("SAT-9")
async def test_after_it_lapsed_the_last_six_support_turns_come_before_what_is_asked():
    now = [1000.0]
    store = SqliteStore(":memory:")
    _, ask = asker(store, lambda: now[0])
    first = await ask("turn 0")
    for n in range(9):
        said = [
            ("user", f"question {n}", "support"),
            ("assistant", f"answer {n}", "support"),
            ("user", "foreign", "shop"),
        ]
        lines = [Message(turn_id=f"t{n}", role=r, text=t, agent=a) for r, t, a in said]  # type: ignore[arg-type]
        store.end_turn(a_turn(f"t{n}", "e1", user="alice", at=float(n)), [], lines)
    assert first.context is None and (await ask("still")).context is None
    now[0] += MINUTES_55 + 1
    replayed = await ask("well?", prior="The user bought tea.")
    told = [f"user: question {n}\nassistant: answer {n}" for n in range(3, 9)]
    assert replayed.context == "\n".join([*told, "The user bought tea."])
    again = await ask("and now?")
    assert (replayed.conversation_id, again.context, again.conversation_id) == (None, None, "sc-3")


async def test_a_store_that_fails_costs_support_its_memory_and_nothing_else():
    class Broken:
        def note(self, *_: Any) -> Note | None:
            raise StoreError("gone")

        def keep_note(self, *_: Any) -> None:
            raise StoreError("gone")

    _, ask = asker(Broken(), lambda: 0.0)
    assert (await ask("hello")).conversation_id is None
