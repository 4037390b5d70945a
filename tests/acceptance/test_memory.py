"""What is remembered, by whom, and for how long: narration, own histories, prior_context, summaries, references."""

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, HumanMessage

from kit.core.bodies.call import AgentStarted, ModelStarted, ToolStarted
from kit.core.bodies.memory import Compacted, ContextCarried
from kit.core.bodies.speech import Component, Text
from kit.core.card import AgentCard, Handoff
from kit.core.context import OPERATOR, Principal
from kit.core.errors import SessionError, UnknownId
from kit.core.outcome import ComponentPayload, Usage
from kit.core.record import UNANSWERED
from kit.core.transcript import transcript
from kit.models.scripted import Line, ScriptedModel
from kit.patterns import PATTERNS
from kit.runtime.clock import run_virtual
from kit.runtime.speech.narration import NarrationFilter, narration
from kit.runtime.turn import Reply, run_turn
from kit.settings import Settings
from kit.tools.render import render_tool
from kit.tools.tool import ToolContext, ToolResult, tool_context
from kit.wire import open_kit
from kit.worlds.consumer.tools import RENDERS
from tests.kits import (
    ALICE,
    EMBEDDED,
    SmallKit,
    answering,
    asks,
    bodies,
    leading,
    small_deck,
    small_kit,
    stitched,
)

OFFER = '<component type="offer">{"id": "of-7", "title": "Harbor Roast", "secret": "payload-only"}</component>'
PRIOR = [
    (
        "submit_prior_context",
        {"prior_context": "The user looked at Harbor Roast (of-7) and wants points for it."},
    )
]


def said(messages: list[BaseMessage]) -> str:
    return "\n".join(str(message.content) for message in messages)


def routed(*names: str) -> ScriptedModel:
    """An orchestrator that asks the agents named in the message, composes what they say, and does small jobs."""

    def route(request: str) -> Line:
        if "submit" in request or "specialist" in request or "Sum up" in request:
            return Line("a note of the helper")
        called = [name for name in names if f"@{name}" in request]
        return asks(*called, query=request) if called else Line("Hello there.")

    return leading(route)


def remembering(*names: str, **fields: Any) -> SmallKit:
    """A kit whose agents answer with their own name and the request's number."""
    models = {
        name: ScriptedModel(lambda m, name=name: Line(f"<{name}> {str(m[-1].content)[-12:]}"))
        for name in names
    }
    return small_kit(routed(*names), models, **fields)


def model_of(kit: SmallKit, agent: str) -> ScriptedModel:
    runnable: Any = kit.team.agents[agent].model.runnable  # type: ignore[attr-defined]
    return getattr(runnable, "bound", runnable)


async def broken(query: str) -> str:
    raise ConnectionError("503")


def routing_calls(kit: SmallKit) -> list[list[BaseMessage]]:
    """Returns what the orchestrator's model saw when it routed."""
    return [
        thread
        for thread in model_of(kit, "orchestrator").seen
        if thread[0].type == "system" and thread[-1].type == "human"
    ]


# Narration apart from components


@pytest.mark.req("PC1-FR-10", "PC1-S5.6e")
async def test_an_inline_component_is_kept_as_a_payload_and_reaches_no_model_page_or_history():
    models = {
        "shop": ScriptedModel(
            lambda _: Line(f"I found one. {OFFER}", pieces=["I found one. <comp", OFFER[5:]])
        )
    }
    kit = small_kit(
        [asks("shop"), Line(f"Here it is: {OFFER}"), asks("shop"), Line("Same again.")], models
    )
    first = await run_turn("find coffee", ALICE, kit)
    await run_turn("and again", ALICE, kit)
    lead = model_of(kit, "orchestrator")
    everything = "\n".join(
        said(thread) for model in (lead, models["shop"]) for thread in model.seen
    )
    assert "<component" not in everything and "payload-only" not in everything
    assert first.text == "Here it is:"
    assert all("<" not in body.text for body in bodies(first, Text))
    kept = bodies(first, Component)
    assert [(part.agent, part.payload["id"]) for part in kept] == [
        ("shop", "of-7"),
        ("orchestrator", "of-7"),
    ]
    stored = kit.store.history(ALICE.key) + kit.store.history(ALICE.key, "shop")
    assert stored and not any("<component" in line.text for line in stored)
    assert (
        first.outcomes[0].kind == "answer"
        and first.outcomes[0].components[0].payload["secret"] == "payload-only"
    )


async def test_an_agent_that_is_no_model_is_parted_from_its_components_too():
    async def ask(query: str) -> str:
        return f"One offer. {OFFER}"

    kit = remembering("shop")
    kit.team = kit.team.with_services({"shop": ask})
    reply = await run_turn("@shop coffee", ALICE, kit)
    assert reply.text == "One offer." and [body.agent for body in bodies(reply, Component)] == [
        "shop"
    ]


texts = st.lists(
    st.sampled_from(
        ["a ", "<", "<b>", "1 < 2", "\n", OFFER, "<comp", "<component/>", "onent type=x>", "é"]
    ),
    max_size=12,
)


@given(texts, st.lists(st.integers(0, 60), max_size=8))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_streamed_in_any_pieces_a_text_is_its_narration(parts: list[str], cuts: list[int]):
    text = "".join(parts)
    plain, _ = narration(text)
    assert "<component" not in plain
    spoken: list[str] = []
    hear = NarrationFilter(lambda piece, tool="", /: spoken.append(piece))
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    for start, end in itertools.pairwise(edges):
        hear(text[start:end])
    hear.end()
    assert "" not in spoken
    if "<component" not in text:
        assert "".join(spoken) == text == plain
    elif parts.count("<comp") == 0 and parts.count("onent type=x>") == 0:
        assert "".join(spoken).strip() == plain


# Render calls


class Found:
    """A lookup that finds two offers."""

    def tool(self) -> Any:
        from kit.tools.enricher import structured

        async def call(**_: Any) -> tuple[str, ToolResult]:
            rows = [{"id": f"of-{n}", "title": f"Offer {n}", "points": n} for n in (1, 2, 3)]
            parts = tuple(ComponentPayload(type="offer", payload=row) for row in rows)
            return "Three offers.", ToolResult(text="Three offers.", components=parts)

        return structured("lookup", "Looks up.", {}, (), call)


def rendering() -> SmallKit:
    chosen = {
        "component_ids": ["of-3", "of-1", "of-9"],
        "titles": ["Third"],
        "analytics_tags": ["cheapest"],
    }
    shop = ScriptedModel(
        Line(calls=[("lookup", {})]),
        Line(calls=[("render_offers", chosen)]),
        Line("Two fit."),
        lambda m: Line("The one you mean."),
    )
    card = AgentCard(
        id="shop", description="Shop.", model="offline", tools=("lookup", "render_offers")
    )
    tools = {"lookup": Found().tool(), "render_offers": render_tool(RENDERS[0])}
    second = asks("shop", query="the second offer you showed me")
    lead = ScriptedModel(asks("shop"), stitched, second, stitched, asks("shop"), stitched)
    return small_kit(lead, {"shop": shop, "rewards": answering("5 points")}, tools, [card])


@pytest.mark.req("PC1-S5.6f", "PC1-S5.6a", "PC1-FR-10")
async def test_a_render_call_is_stored_as_a_tool_message_with_ids_titles_tags_and_data():
    kit = rendering()
    reply = await run_turn("find coffee", ALICE, kit)
    events = kit.store.events(reply.turn_id, ALICE.principal)
    [(span_id, call)] = [
        (event.span_id, event.body)
        for event in events
        if isinstance(event.body, ToolStarted) and event.body.tool.startswith("render_")
    ]
    assert call.agent == "shop" and call.call_id
    assert call.args == {
        "component_ids": ["of-3", "of-1", "of-9"],
        "titles": ["Third"],
        "analytics_tags": ["cheapest"],
    }
    shown = [
        (event.turn_id, event.body.agent, event.body.payload)
        for event in events
        if event.span_id == span_id and isinstance(event.body, Component)
    ]
    assert [(turn_id, agent) for turn_id, agent, _ in shown] == [(reply.turn_id, "shop")] * 2
    assert [(data["id"], data["title"], data["points"]) for *_, data in shown] == [
        ("of-3", "Third", 3),
        ("of-1", "Offer 1", 1),
    ]
    assert not any(
        "of-" in line.text
        for line in kit.store.history(ALICE.key) + kit.store.history(ALICE.key, "shop")
    )


@pytest.mark.req("PC1-S5.6d")
async def test_the_second_offer_you_showed_me_reaches_the_models_as_a_compact_reference_and_only_then():
    kit = rendering()
    shop, lead = model_of(kit, "shop"), model_of(kit, "orchestrator")
    await run_turn("find coffee", ALICE, kit)
    await run_turn("tell me about the second offer you showed me", ALICE, kit)
    for thread in (lead.seen[2], shop.seen[3]):
        assert "1. offer of-3: Third\n2. offer of-1: Offer 1" in str(thread[0].content)
    assert "points" not in str(shop.seen[3][0].content)
    shop.script.append("Fine.")
    await run_turn("find tea", ALICE, kit)
    assert "of-1" not in said(lead.seen[4]) and "of-1" not in said(shop.seen[4])


@pytest.mark.req("PC1-FR-7", "PC1-S5.6d")
async def test_what_one_agent_showed_is_no_reference_of_anothers():
    def showing(title: str) -> ScriptedModel:
        return ScriptedModel(
            lambda _: Line(
                f'Here. <component type="offer">{{"id": "of-1", "title": "{title}"}}</component>'
            )
        )

    kit = small_kit(
        routed("ann", "bob"), {"ann": showing("Harbor Roast"), "bob": showing("Slow Tide")}
    )
    await run_turn("@ann @bob", ALICE, kit)
    await run_turn("@ann @bob tell me about the first one", ALICE, kit)
    prompts = {name: str(model_of(kit, name).seen[-1][0].content) for name in ("ann", "bob")}
    assert "Harbor Roast" in prompts["ann"] and "Slow Tide" not in prompts["ann"]
    assert "Slow Tide" in prompts["bob"] and "Harbor Roast" not in prompts["bob"]
    [lead] = [
        thread
        for thread in model_of(kit, "orchestrator").seen
        if "first one" in str(thread[-1].content)
    ]
    assert "Harbor Roast" in str(lead[0].content) and "Slow Tide" in str(lead[0].content)


# Own histories


@pytest.mark.req("PC1-FR-7", "PC1-FR-9", "SAT-8", "PC1-S5.6a")
@given(
    st.lists(
        st.lists(st.sampled_from(["ann", "bob", "cat"]), max_size=3, unique=True),
        min_size=1,
        max_size=7,
    )
)
@settings(max_examples=12, deadline=None, derandomize=True)
def test_over_any_turns_an_agent_sees_exactly_its_own_and_the_store_holds_all(
    turns: list[list[str]],
):
    async def conversation() -> None:
        kit = remembering("ann", "bob", "cat")
        for number, called in enumerate(turns):
            await run_turn(
                " ".join(f"@{name}#{number:02}" for name in called) or "hello", ALICE, kit
            )
        for name in ("ann", "bob", "cat"):
            mine = [number for number, called in enumerate(turns) if name in called]
            for seen, thread in enumerate(model_of(kit, name).seen):
                before = [m for m in thread[1:-1] if m.type == "ai"]
                assert len(before) == seen and all(
                    str(m.content).startswith(f"<{name}>") for m in before
                )
                assert not any(
                    f"<{other}>" in said(thread) for other in {"ann", "bob", "cat"} - {name}
                )
            assert len(kit.store.history(ALICE.key, name)) == 2 * len(mine)
        assert len(kit.store.history(ALICE.key)) == 2 * len(turns)
        assert [len(kit.store.events(turn.id, OPERATOR)) > 5 for turn in kit.store.turns()] == [
            True
        ] * len(turns)

    run_virtual(conversation())


@pytest.mark.req("PC2-FR-11")
async def test_of_two_strangers_who_open_one_new_session_at_once_only_the_first_gets_it():
    kit = remembering("ann")
    other = ALICE.model_copy(update={"principal": Principal(tenant_id="acme", user_id="mallory")})
    first, second = run_turn("@ann mine", ALICE, kit), run_turn("@ann theirs", other, kit)
    results = await asyncio.gather(first, second, return_exceptions=True)
    assert isinstance(results[0], Reply) and isinstance(results[1], SessionError)
    assert [line.text for line in kit.store.history(ALICE.key) if line.role == "user"] == [
        "@ann mine"
    ]


# prior_context


def helper(text: str = "", **fields: Any) -> ScriptedModel:
    return ScriptedModel(lambda _: Line(text, calls=[] if text or fields else PRIOR, **fields))


async def hops(jobs: ScriptedModel, *messages: str, **fields: Any) -> tuple[SmallKit, list[Reply]]:
    names = ("shop", "rewards", "support")
    kit = remembering(*names, **fields)
    from kit.runtime.team import bind

    models = {name: model_of(kit, name) for name in (*names, "orchestrator")}
    kit.team = bind(kit.team.deck, {**models, "helper": jobs}, {})
    return kit, [await run_turn(message, ALICE, kit) for message in messages]


@pytest.mark.req("PC1-FR-8", "PC1-S5.6b", "SAT-8", "PC2-S9.2-6")
async def test_on_every_hop_the_called_agent_learns_entities_ids_and_goals_of_the_turns_before():
    jobs = helper()
    kit, replies = await hops(
        jobs, "@shop find Harbor Roast", "@rewards my points", "hello", "@support it never counted"
    )
    begun = [body for reply in replies for body in bodies(reply, AgentStarted)]
    started = {body.agent: body.prior_context for body in begun}
    assert started["shop"] is None
    for agent in ("rewards", "support"):
        assert "Harbor Roast (of-7)" in str(started[agent])
        assert "Harbor Roast (of-7)" in str(model_of(kit, agent).seen[0][0].content)
    assert "Harbor Roast" in said(jobs.seen[-1]) and "my points" in said(jobs.seen[-1])
    assert "it never counted" in str(jobs.seen[-1][-1].content)


@pytest.mark.req("PC1-NFR-7")
async def test_the_helper_is_asked_on_a_switch_only_and_at_most_once_a_turn():
    jobs = helper()
    _, replies = await hops(
        jobs,
        "@shop a",
        "@shop b",
        "thanks",
        "@shop c",
        "@rewards @support d",
        "@rewards e",
        "@rewards @shop f",
    )
    assert [len(bodies(reply, ContextCarried)) for reply in replies] == [
        0,
        0,
        0,
        0,
        1,
        1,
        1,
    ]
    assert len(jobs.seen) == 3
    assert [body.agents for body in bodies(replies[5], ContextCarried)] == [("rewards",)]
    assert [body.agents for body in bodies(replies[6], ContextCarried)] == [("shop",)]
    started = {body.agent: body.prior_context for body in bodies(replies[6], AgentStarted)}
    assert started["rewards"] is None and started["shop"] is not None
    spent = [body for body in bodies(replies[4], ModelStarted) if body.purpose == "job"]
    assert len(spent) == 1 and replies[4].usage.model_calls == 5


@pytest.mark.req("PC1-FR-8")
async def test_an_agent_learns_what_another_said_in_the_turn_that_both_had_a_part_of():
    jobs = helper()
    kit, replies = await hops(jobs, "@shop @rewards a", "@shop b", "@shop c")
    assert [body.agents for reply in replies for body in bodies(reply, ContextCarried)] == [
        ("shop",)
    ]
    assert "<rewards>" in said(jobs.seen[0])
    assert "Harbor Roast (of-7)" in str(model_of(kit, "shop").seen[1][0].content)


@pytest.mark.req("PC1-R-3")
async def test_a_session_older_than_an_agent_reaches_it_with_a_context_it_can_use(
    tmp_path: Path,
):
    models = {
        name: ScriptedModel(lambda m, name=name: Line(f"<{name}> {m[-1].content}"))
        for name in ("shop", "play")
    }
    models |= {"orchestrator": routed("shop", "play"), "helper": helper()}
    settings = Settings(store=str(tmp_path / "kit.db"))
    for agents, message in (
        (["shop"], "@shop find Harbor Roast"),
        (["shop", "play"], "@play a game about it"),
    ):
        bound = {name: models[name] for name in (*agents, "orchestrator", "helper")}
        async with open_kit(settings, models=bound, tools={}, deck=small_deck(agents)) as kit:
            reply = await kit.ask(message, kit.session("old"))
    assert reply.text == "<play> @play a game about it"
    [thread] = models["play"].seen
    assert "Harbor Roast (of-7)" in str(thread[0].content) and [m.type for m in thread] == [
        "system",
        "human",
    ]


# After a failure


@pytest.mark.req("PC1-FR-7b", "PC1-FR-7")
async def test_try_again_reaches_the_agent_with_its_own_unanswered_question_and_no_other():
    rewards = ScriptedModel(
        lambda m: Line("5 points.") if len(m) > 2 else Line(error=ConnectionError("503"))
    )

    def route(request: str) -> Line:
        return asks("rewards", query=request) if "again" in request else asks("shop", "rewards")

    kit = small_kit(leading(route), {"shop": answering("coffee"), "rewards": rewards})
    first = await run_turn("coffee and points", ALICE, kit)
    again = await run_turn("Please try again", ALICE, kit)
    assert [outcome.kind for outcome in first.outcomes] == [
        "answer",
        "failure",
    ] and again.text == "5 points."
    assert [str(m.content) for m in rewards.seen[1][1:]] == [
        "about rewards",
        UNANSWERED,
        "Please try again",
    ]
    assert "Still without an answer: ask_rewards" in str(routing_calls(kit)[-1][0].content)
    assert UNANSWERED not in "".join(
        line.text for reader in ("", "shop") for line in kit.store.history(ALICE.key, reader)
    )
    await run_turn("Please try again", ALICE, kit)
    assert "Still without" not in str(routing_calls(kit)[-1][0].content)


@pytest.mark.req("PC1-FR-7b", "PC1-FR-7")
@pytest.mark.parametrize("history", ["own", "whole"])
async def test_try_again_brings_a_closed_agent_the_question_it_left_open(history: str):
    replies = iter(
        [Line(error=OSError("503")), Line(error=OSError("503")), Line("5 points."), Line("6.")]
    )
    rewards = ScriptedModel(lambda _: next(replies))
    card = AgentCard(
        id="rewards", description="Points.", model="offline", handoff=Handoff(closed=True)
    )

    lead = leading(lambda request: asks("rewards", query=request))
    kit = small_kit(lead, {"rewards": rewards}, cards=[card], history=history)
    messages = ("How many points?", "Try again", "Please try again, now", "once more, please")
    texts = [(await run_turn(message, ALICE, kit)).text for message in messages]
    queries = [str(thread[-1].content) for thread in rewards.seen]
    assert queries == [*["How many points?"] * 3, "once more, please"]
    assert texts[2:] == ["5 points.", "6."], "what was answered is not asked again by the kit"
    assert all(len(thread) == 2 for thread in rewards.seen), "and it reads nothing else"


@pytest.mark.req("PC1-FR-7b")
async def test_a_question_over_the_cap_stays_open_and_one_that_a_guard_dropped_does_not():
    def route(request: str) -> Line:
        if request == "now the third":
            return asks("cat", query=request)
        return asks("ann", "bob", "cat", "ann")

    models = {name: answering(name) for name in ("ann", "bob", "cat")}
    kit = small_kit(leading(route), models, cap=2)
    await run_turn("three things", ALICE, kit)
    # "go on" would stand for what was left out, in its first words; this is a message of its own
    await run_turn("now the third", ALICE, kit)
    assert [str(m.content) for m in model_of(kit, "cat").seen[0][1:]] == [
        "about cat",
        UNANSWERED,
        "now the third",
    ]
    assert [line.text for line in kit.store.history(ALICE.key, "ann")] == ["about ann", "ann"]


@pytest.mark.req("PC1-FR-7b", "PC1-FR-8")
async def test_after_a_failure_an_agent_is_told_again_what_it_was_told_and_what_failed_elsewhere():
    jobs = helper()
    kit, _ = await hops(jobs, "@shop a")
    working = kit.team.agents["rewards"]
    kit.team = kit.team.with_services({"rewards": broken})
    await run_turn("@rewards b", ALICE, kit)
    kit.team = kit.team.with_agents({"rewards": working})
    replies = [
        await run_turn(message, ALICE, kit)
        for message in ("@rewards again", "@rewards c", "@shop d")
    ]
    assert [len(bodies(reply, ContextCarried)) for reply in replies] == [
        1,
        0,
        1,
    ]
    assert "Harbor Roast (of-7)" in str(model_of(kit, "rewards").seen[0][0].content)


@pytest.mark.req("PC1-FR-7b")
async def test_what_failed_before_anybody_was_called_reaches_the_agent_that_is_called_next():
    jobs = helper()
    kit, _ = await hops(jobs, "@shop a")
    lead = model_of(kit, "orchestrator")
    working, lead.script[0] = lead.script[0], lambda _: Line(error=ConnectionError("503"))
    failed = await run_turn("@shop find tea", ALICE, kit)
    lead.script[0] = working
    reply = await run_turn("@shop try again", ALICE, kit)
    assert failed.status == "failed" and not failed.outcomes
    assert any("find tea" in said(thread) for thread in jobs.seen)
    assert [body.prior_context for body in bodies(reply, AgentStarted)] == [
        PRIOR[0][1]["prior_context"]
    ]


@pytest.mark.req("PC1-FR-7b")
@pytest.mark.parametrize(
    ("question", "fault", "words"),
    [
        ("find coffee deals", "shop=raise", "Coffee offers"),
        ("How many points do I have?", "rewards=error_envelope", "4,975 points"),
        ("My receipt didn't scan", "support=hang", "does not scan"),
    ],
)
@pytest.mark.parametrize("again", ["Please try again", "Inténtalo de nuevo, por favor"])
async def test_the_shipped_deck_answers_once_the_fault_is_gone(
    question: str, fault: str, words: str, again: str
):
    async with open_kit(EMBEDDED, faults=True) as kit:
        session = kit.session("s")
        first = await kit.ask(question, session, faults=[fault])
        still = await kit.ask(again, session, faults=[fault])
        await kit.ask("thanks", session)
        reply = await kit.ask(again, session)
    agent = fault.partition("=")[0]
    assert words not in first.text and words not in still.text
    assert words in reply.text and reply.routing.invoked == (agent,)


@pytest.mark.req("PC2-S9.2-6")
async def test_what_the_orchestrator_wrote_stands_and_costs_no_call():
    jobs = helper()
    kit, _ = await hops(jobs, "@shop a")
    context = "It is about of-7. " * 1_000
    call = ("ask_rewards", {"query": "b", "intent_count": 1, "prior_context": context})
    from kit.runtime.team import bind

    lead = ScriptedModel(Line("Let me see.", calls=[call]), "done")
    names = ("shop", "rewards", "support")
    kit.team = bind(
        kit.team.deck,
        {**{n: model_of(kit, n) for n in names}, "orchestrator": lead, "helper": jobs},
        {},
    )
    reply = await run_turn("b", ALICE, kit)
    assert jobs.seen == []
    assert "It is about of-7." in str(model_of(kit, "rewards").seen[0][0].content)
    [started] = bodies(reply, AgentStarted)
    assert len(started.prior_context or "") <= 800, "it is cut like the helper's"


@pytest.mark.parametrize(
    "fault", [{"error": RuntimeError("503")}, {"delay": 60.0}, {"text": "   "}]
)
async def test_a_helper_that_fails_hangs_or_says_nothing_costs_only_the_prior_context(
    fault: dict[str, Any],
):
    kit, replies = await hops(
        helper(**{"text": " ", **fault}), "@shop a", "@rewards b", helper_ms=500
    )
    assert replies[1].status == "ok" and replies[1].text.startswith("<rewards>")
    assert [body.text for body in bodies(replies[1], ContextCarried)] == [None]
    assert "From earlier" not in str(model_of(kit, "rewards").seen[0][0].content)
    assert replies[1].events[-1].at <= 0.6


@pytest.mark.req("SAT-8")
async def test_an_api_based_agent_gets_prior_context_before_its_question_and_no_history():
    heard: list[str] = []

    async def ask(query: str, principal: Principal) -> str:
        heard.append(query)
        assert principal == ALICE.principal
        return "Support says so."

    kit, _ = await hops(helper(), "@shop a")
    kit.team = kit.team.with_services({"support": ask})
    reply = await run_turn("@support b", ALICE, kit)
    await run_turn("@support c", ALICE, kit)
    assert heard == [f"{PRIOR[0][1]['prior_context']}\n\n@support b", "@support c"]
    assert reply.outcomes[0].usage.input_tokens == 0 and reply.text == "Support says so."


async def test_a_service_is_put_in_a_sub_agents_place_when_the_kit_is_opened():
    async def ask(question: str, principal: Principal) -> str:
        return f"{principal.user_id} asked {question!r}."

    models = {
        "orchestrator": ScriptedModel(asks("support"), stitched),
        "support": answering("The model."),
    }
    opened: dict[str, Any] = {"models": models, "tools": {}, "deck": small_deck(["support"])}
    async with open_kit(
        Settings(store=":memory:", user="bob"), services={"support": ask}, **opened
    ) as kit:
        reply = await kit.ask("where is my order", kit.session("s"))
        assert reply.text == "bob asked 'about support'." and reply.outcomes[0].usage == Usage(
            untold_tokens=1, untold_costs=1
        )
        assert kit.stages.team(PATTERNS["monolith"]).agents["support"].card.id == "support"
    with pytest.raises(UnknownId, match="did you mean 'support'"):
        async with open_kit(Settings(store=":memory:"), services={"suport": ask}, **opened):
            pass


# Compaction


def summing() -> ScriptedModel:
    def line(messages: list[BaseMessage]) -> Line:
        numbers = sorted(
            {
                word
                for word in said(messages[:-1]).replace("\n", " ").split()
                if word.startswith("fact-")
            }
        )
        return Line(calls=[("submit_summary", {"summary": " ".join(numbers)})])

    return ScriptedModel(line)


@pytest.mark.req("PC1-FR-11", "PC1-S5.6c", "PC1-NFR-5", "PC1-FR-9")
@pytest.mark.parametrize(("after", "keep"), [(4, 2), (6, 1)])
async def test_past_the_threshold_old_turns_become_one_summary_and_nothing_leaves_the_store(
    after: int, keep: int
):
    turns = [f"@shop fact-{n:02}" for n in range(14)]
    kit, replies = await hops(summing(), *turns, compact_after=after, compact_keep=keep)
    lead = model_of(kit, "orchestrator")
    for number, thread in enumerate(t for t in lead.seen if t[-1].type == "human"):
        whole = [m for m in thread[1:-1] if isinstance(m, HumanMessage)]
        assert len(whole) <= after
        known = said(thread)
        assert all(f"fact-{n:02}" in known for n in range(number))
    done = [body for reply in replies for body in bodies(reply, Compacted)]
    assert done and all(step.done and step.kept == keep for step in done)
    note = kit.store.note(ALICE.key, "summary")
    assert note is not None and json.loads(note.value)["turns"] == sum(step.turns for step in done)
    assert len(kit.store.history(ALICE.key)) == 28
    assert "fact-00 fact-01" not in said(model_of(kit, "shop").seen[-1][:1])


@pytest.mark.parametrize("fault", [{"error": RuntimeError("503")}, {"delay": 60.0}])
async def test_a_summary_that_fails_never_fails_or_delays_the_turn(fault: dict[str, Any]):
    kit, replies = await hops(
        helper("x", **fault), *[f"@shop {n}" for n in range(5)], compact_after=3, compact_keep=1
    )
    assert [reply.status for reply in replies] == ["ok"] * 5
    assert kit.store.note(ALICE.key, "summary") is None
    answered = next(
        e.at for e in replies[4].events if isinstance(e.body, Text) and e.body.channel == "answer"
    )
    assert answered == 0.0 and replies[4].events[-1].at <= 1.0
    assert (
        len([m for m in model_of(kit, "orchestrator").seen[-2] if isinstance(m, HumanMessage)]) == 5
    )


@pytest.mark.req("PC1-FR-11")
async def test_what_a_helper_that_was_down_left_behind_is_summed_up_once_it_is_back():
    from kit.runtime.team import bind

    kit, _ = await hops(
        helper(error=RuntimeError("503")),
        *[f"@shop fact-{n:02}" for n in range(30)],
        compact_after=3,
    )
    models = {name: model_of(kit, name) for name in ("shop", "rewards", "support", "orchestrator")}
    kit.team = bind(kit.team.deck, {**models, "helper": summing()}, {})
    for n in range(30, 36):
        await run_turn(f"@shop fact-{n}", ALICE, kit)
    known = said(models["orchestrator"].seen[-2])
    assert [n for n in range(36) if f"fact-{n:02}" not in known] == []


async def test_a_threshold_in_tokens_comes_first_where_turns_are_long():
    fields = {"compact_after": 16, "compact_tokens": 300, "compact_keep": 1}
    kit, _ = await hops(
        summing(), *[f"@shop fact-{n} " + "long " * 100 for n in range(4)], **fields
    )
    assert kit.store.note(ALICE.key, "summary") is not None


# Scheduled turns, and two turns at once


@pytest.mark.req("PC2-PD1", "PC2-FR-11")
async def test_a_scheduled_turn_speaks_for_its_target_all_the_way_to_the_tool():
    seen: list[ToolContext] = []
    from kit.tools.enricher import structured

    async def call(**_: Any) -> tuple[str, ToolResult]:
        seen.append(tool_context())
        return "ok", ToolResult(text="ok")

    target = Principal(tenant_id="globex", user_id="u-9")
    card = AgentCard(id="shop", description="Shop.", model="offline", tools=("look",))
    shop = ScriptedModel(
        lambda m: Line("Done.") if m[-1].type == "tool" else Line(calls=[("look", {})])
    )
    tools = {"look": structured("look", "Looks.", {}, (), call)}
    models = {"orchestrator": ScriptedModel(asks("shop"), stitched), "shop": shop}
    async with open_kit(
        Settings(store=":memory:"), models=models, tools=tools, deck=small_deck(["shop"], [card])
    ) as kit:
        reply = await kit.run_scheduled("weekly digest", target, job="digest")
        [turn] = kit.store.turns()
        stored = kit.store.session(turn.session_key)
    assert [context.inherited.principal for context in seen] == [target] and reply.status == "ok"
    assert (turn.tenant_id, turn.user_id) == ("globex", "u-9") and turn.session_id.startswith(
        "job:digest:"
    )
    assert stored is not None and stored.principal == target


async def test_two_turns_of_one_session_at_once_lose_nothing_and_each_sees_what_had_ended():
    slow = ScriptedModel(
        lambda m: Line(
            f"<ann> {str(m[-1].content)[-3:]}", delay=1.0 if "one" in str(m[-1].content) else 0.1
        )
    )
    kit = small_kit(routed("ann"), {"ann": slow})
    first, second = run_turn("@ann one", ALICE, kit), run_turn("@ann two", ALICE, kit)
    replies = await asyncio.gather(first, second)
    assert [reply.status for reply in replies] == ["ok", "ok"]
    assert [len(thread) for thread in slow.seen] == [2, 2]
    assert [line.text for line in kit.store.history(ALICE.key, "ann")] == [
        "@ann two",
        "<ann> two",
        "@ann one",
        "<ann> one",
    ]
    assert len(kit.store.history(ALICE.key)) == 4 and len(kit.store.turns()) == 2
    await run_turn("@ann three", ALICE, kit)
    assert len(slow.seen[-1]) == 6
    assert transcript(replies[0].events).answer == "<ann> one"
