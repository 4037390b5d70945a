"""The execution design's own tests that no other file has (PC2 9.1, 9.2, 9.4, 9.5): a turn from its
message to its reply."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool

from kit.compose.deck import Deck, DeckSettings, load_deck
from kit.core.bodies.call import AgentStarted, Envelope
from kit.core.bodies.turn import TurnStarted
from kit.core.card import AgentCard
from kit.core.context import OPERATOR, InheritedContext
from kit.core.outcome import AgentCall, Answer, Outcome
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.context import RunContext
from kit.runtime.team import bind
from kit.runtime.turn import run_turn
from kit.settings import HOME
from kit.stores.sqlite import SqliteStore
from kit.tools.deck_tools import DeckTools
from kit.tools.enricher import HttpEnrich
from kit.wire import Kit, open_kit
from kit.worlds.consumer.support import HttpSupport, SupportQuestion
from kit.worlds.consumer.support_service import support_app
from tests.kits import (
    ALICE,
    EMBEDDED,
    SmallKit,
    answering,
    asks,
    bodies,
    small_deck,
    small_kit,
    stitched,
)
from tests.runtime.test_faults import EVERY_VERTICAL
from tests.tools.test_tools import Reply as EnvelopeReply
from tests.tools.test_tools import Watched, client, world
from tests.worlds import TOOL_IDS, context_app, toolbox


@dataclass
class WatchedSupport:
    """Passes questions on to the real support service and keeps them."""

    support: HttpSupport
    asked: list[SupportQuestion] = field(default_factory=list[SupportQuestion])

    def ask(self, question: SupportQuestion) -> AsyncGenerator[Any, None]:
        self.asked.append(question)
        return self.support.ask(question)


@dataclass
class Watching:
    """The shipped kit, and what reached its services."""

    kit: Kit
    context: Watched
    support: WatchedSupport


@asynccontextmanager
async def watching(
    alter: Callable[[EnvelopeReply], EnvelopeReply] = lambda reply: reply,
) -> AsyncGenerator[Watching]:
    async with (
        client(context_app(world())) as context,
        client(support_app(world(), pace=0.0)) as support,
    ):
        asked, told = Watched(HttpEnrich(context), alter), WatchedSupport(HttpSupport(support))
        deck = replace(load_deck(EMBEDDED.deck), tools=DeckTools(toolbox(asked, told)))
        async with open_kit(EMBEDDED, deck=deck) as kit:
            yield Watching(kit, asked, told)


# For whom


@pytest.mark.req("PC2-S9.2-4", "PC2-FR-11", "PC2-AC-7")
async def test_the_principal_is_one_on_the_trace_from_the_session_to_every_request():
    async with watching() as seen:
        kit = seen.kit
        sessions = [
            kit.session(f"{tenant}-{name}", tenant=tenant)
            for tenant in ("acme", "globex")
            for name in EVERY_VERTICAL
        ]
        questions = [*EVERY_VERTICAL.values()] * 2
        replies = await asyncio.gather(
            *(kit.ask(q, s) for q, s in zip(questions, sessions, strict=True))
        )
        sent = [
            (request.request_id.split("/"), request.principal) for request in seen.context.asked
        ]
    for reply, session, agent in zip(replies, sessions, [*EVERY_VERTICAL] * 2, strict=True):
        who = session.principal
        [turn] = [span for span in reply.trace.spans if span.kind == "turn"]
        [worker] = [span for span in reply.trace.spans if span.kind == "agent"]
        assert [
            body.principal for body in (*bodies(reply, TurnStarted), *bodies(reply, AgentStarted))
        ] == [who, who]
        assert turn.attributes["principal"] == worker.attributes["principal"] == who.model_dump()
        assert (worker.name, worker.parent_id) == (agent, turn.id)
        calls = {
            span.id
            for span in reply.trace.spans
            if span.kind == "tool" and span.parent_id == worker.id
        }
        envelopes = [event for event in reply.events if isinstance(event.body, Envelope)]
        assert {event.span_id for event in envelopes} <= calls, (
            "each under a tool call of this agent"
        )
        assert all(e.body.principal == who and e.body.principal_verified for e in envelopes)  # type: ignore[union-attr]
        mine = [(ids[1], principal) for ids, principal in sent if ids[0] == reply.turn_id]
        assert mine == [(agent, who)] * len(envelopes) and bool(mine) == (agent != "support")
    told = [question.principal for question in seen.support.asked]
    assert sorted(map(str, told)) == ["acme/u-001", "globex/u-001"]


# Contracts with the neighbours


PC1_ORCHESTRATOR = """
id: orchestrator
description: Top-level routing across vertical sub-agents
role: {role}
model: gpt-5.4-mini-low
tools: [llm_feedback]
prompt_blocks: [persona-orchestrator, instructions-routing, instructions-prior-context-generation]
sub_agents: [shop, rewards, support, ereceipts]
"""


@pytest.mark.req("PC2-S9.4-1")
async def test_the_composition_designs_cards_run_as_they_are_and_sub_agents_alone_make_an_orchestrator():
    shipped = load_deck(HOME / "cards" / "consumer")

    @tool
    def stand_in() -> str:
        """Stands in for any tool."""
        return "ok"

    told: list[list[str]] = []
    for lead_role, sub_role in (("orchestrator", "native"), ("native", "orchestrator")):
        card = AgentCard.model_validate(yaml.safe_load(PC1_ORCHESTRATOR.format(role=lead_role)))
        subs = [
            shipped.cards[name].model_copy(update={"role": sub_role}) for name in card.sub_agents
        ]
        models = {name: answering(f"from {name}") for name in card.sub_agents}
        lead = ScriptedModel(asks("rewards", "shop", query="points and deals"), stitched)
        deck = Deck.of(
            [card, *subs],
            shipped.blocks.values(),
            DeckSettings(
                orchestrator="orchestrator", required_blocks=shipped.settings.required_blocks
            ),
            [spec for spec in shipped.models.values() if spec.key != "offline"],
        )
        team = bind(deck, {**models, "orchestrator": lead}, dict.fromkeys(TOOL_IDS, stand_in))
        reply = await run_turn("points and deals", ALICE, SmallKit(team, SqliteStore(":memory:")))
        assert reply.text == "from rewards | from shop" and reply.routing.invoked == (
            "rewards",
            "shop",
        )
        assert {type(agent) for agent in team.agents.values()} == {type(team.orchestrator)}, (
            "one class runs them all"
        )
        told.append([event.kind for event in reply.events])
    assert told[0] == told[1]


@pytest.mark.req("PC2-S9.4-4", "PC2-FR-5", "PC2-S9.1-3")
async def test_what_a_sub_agent_inherits_is_what_memory_keeps_under_the_same_names(
    tmp_path: Path,
):
    inherited: list[InheritedContext] = []

    @dataclass(frozen=True)
    class Peer:
        card: AgentCard
        time_budget: float | None = None

        async def run(self, call: AgentCall, ctx: RunContext) -> Outcome:
            inherited.append(ctx.inherited)
            return Answer(call_id=call.call_id, agent=self.card.id, text=f"{self.card.id} knows")

    jobs = ScriptedModel(
        lambda _: Line(
            calls=[("submit_prior_context", {"prior_context": "They looked at Brightroast."})]
        )
    )
    lead = ScriptedModel(asks("shop"), stitched, asks("rewards"), stitched)
    deck = small_deck(["shop", "rewards"])
    team = bind(deck, {"orchestrator": lead, "helper": jobs, "*": answering("unused")}, {})
    team = team.with_agents({name: Peer(deck.cards[name]) for name in ("shop", "rewards")})
    path = tmp_path / "kit.db"
    kit = SmallKit(team, SqliteStore(path))
    turns = [await run_turn(message, ALICE, kit) for message in ("coffee", "points for it")]
    kit.store.close()
    store = SqliteStore(path)
    for reply, bundle, prior in zip(
        turns, inherited, (None, "They looked at Brightroast."), strict=True
    ):
        kept = store.session(bundle.session_key)
        assert kept is not None
        [crossed] = [
            e.body.prior_context
            for e in store.events(reply.turn_id, OPERATOR)
            if isinstance(e.body, AgentStarted)
        ]
        assert crossed == prior and bundle == InheritedContext(
            principal=kept.principal,
            episode_id=kept.id,
            locale=kept.locale,
            location=kept.location,
            prior_context=crossed,
        )
        [agent] = reply.routing.invoked
        own = store.history(bundle.session_key, agent)
        assert [line.text for line in own] == [f"about {agent}", f"{agent} knows"], (
            "the reference opens its own history"
        )
    store.close()


@pytest.mark.req("PC2-S9.4-5", "PC1-S9.4-1", "PC1-S5.2b")
async def test_a_sub_agent_is_registered_and_answered_like_any_other_tool():
    @tool
    def lookup(key: str) -> str:
        """Look a key up."""
        return f"value of {key}"

    lead = AgentCard(
        id="orchestrator",
        description="Routes.",
        model="offline",
        tools=("lookup",),
        sub_agents=("a", "Hotels_4"),
    )
    both = Line(
        "Let me see.", calls=[*asks("a").calls, ("lookup", {"key": "k"}), *asks("Hotels_4").calls]
    )
    model = ScriptedModel(both, stitched)
    kit = small_kit(
        model,
        {"a": answering("from a"), "Hotels_4": answering("from hotels")},
        {"lookup": lookup},
        [lead],
    )
    registered: list[dict[str, Any]] = kit.team.orchestrator.model.runnable.kwargs["tools"]  # type: ignore[attr-defined]
    assert [entry["function"]["name"] for entry in registered] == [
        "lookup",
        "ask_a",
        "ask_Hotels_4",
    ]
    for entry in registered:
        assert entry["function"].keys() == registered[0]["function"].keys()
        Draft202012Validator.check_schema(entry["function"]["parameters"])
    reply = await run_turn("both of it", ALICE, kit)
    calls = [call["id"] for call in model.seen[1][-4].tool_calls]  # type: ignore[union-attr]
    results = {m.tool_call_id: str(m.content) for m in model.seen[1] if isinstance(m, ToolMessage)}
    assert [results[call_id] for call_id in calls] == [
        "from a",
        "value of k",
        "from hotels",
    ] and len(results) == 3
    assert reply.status == "ok"
