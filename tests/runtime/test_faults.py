"""Everything that can be made to go wrong, on the shipped deck: one plain reply, the answers in
hand, reasons in the trace."""

import io
import logging
import os
import re
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import ChatGenerationChunk
from pydantic import PrivateAttr

from kit.cli import main
from kit.compose.deck import Deck, load_deck
from kit.core.bodies.call import AgentError, Envelope
from kit.core.bodies.speech import Status, StatusLine
from kit.core.context import OPERATOR, Principal
from kit.core.envelope import EnricherRequest
from kit.core.errors import FaultError, KitError, UnknownId
from kit.core.fault import (
    ALIASES,
    CANARY,
    CANARY_NUMBER,
    CATALOGUE,
    HEADER,
    KINDS,
    RAW,
    STRANGE_STATUS,
    Fault,
    Kind,
    kinds_of,
    parse,
)
from kit.core.fault_injection import inject_faults
from kit.core.outcome import Answer, Failure
from kit.core.status import UNKNOWN
from kit.core.transcript import transcript
from kit.models.faulty import REFUSAL, FaultyModel
from kit.models.offline import OfflineModel
from kit.runtime.clock import run_virtual
from kit.runtime.turn import Reply
from kit.settings import Settings
from kit.tools.asgi_transport import StreamingASGITransport
from kit.tools.enricher import HttpEnrich
from kit.ui.shared.host import Host
from kit.ui.shared.turn_fold import advance
from kit.ui.shared.turn_view import TurnView
from kit.ui.traces.export import export
from kit.wire import Kit, open_kit
from kit.worlds.__main__ import world_app
from kit.worlds.consumer.wording import WORDINGS
from kit.worlds.consumer.world import load_world
from kit.worlds.manga.library import Library
from kit.worlds.service.faults import by_header
from kit.worlds.service.serve import serving
from tests.kits import content_of
from tests.worlds import MANGA, context_app

EMBEDDED = Settings(store=":memory:", pace=0.0, today="2026-11-01")
AGENTS = ("support", "rewards", "shop")
QUESTION = "my receipt didn't scan, how many points do I have, and find coffee deals"
TELLS = {
    "support": "Lay it flat in good light",
    "rewards": "4,975 points",
    "shop": "Ember Hill Ground Coffee",
}
"""What the reply says when the agent answered, and only then."""
EVERY_VERTICAL = {
    "shop": "find coffee deals",
    "support": "my receipt didn't scan",
    "rewards": "how many points do I have?",
    "ereceipts": "show me my receipts from last week",
    "play": "which games can I play for points?",
    "offer_details": "which offers end soon?",
    "restaurants": "find a pizza place nearby",
    "retailer_context": "when does Harvest Market open?",
}
LOST: dict[Kind, tuple[str, set[str]]] = {
    "raise": ("invocation", {"exception"}),
    "hang": ("invocation", {"timeout"}),
    "slow_drip": ("invocation", {"timeout"}),
    "instantiation": ("invocation", {"exception"}),
    "refuses": ("invocation", {"refusal", "insufficient"}),
    "error_envelope": ("data", {"unavailable"}),
    "foreign_principal": ("data", {"principal_mismatch"}),
    "bad_payload": ("data", {"unavailable", "contract_violation"}),
    "version_break": ("data", {"unavailable", "contract_violation"}),
}
"""Kinds after which an agent has no answer, with what its outcome says."""
KEPT = ("partial_envelope", "malformed_status", "unknown_tool", "repeats_id")
"""Kinds an agent can answer in spite of."""
MARKS = (RAW, CANARY, STRANGE_STATUS, str(CANARY_NUMBER), f"{CANARY_NUMBER:,}")
RAW_WORDS = re.compile(
    r"Traceback|Error\b|Exception|Injected|envelope|principal|\b50\d\b|status=|\b\w+_\w+\b|[{}<>]"
)
"""Words of machines: errors, codes, ids, payloads."""


class Asking:
    """Turns on one kit, each in a session of its own."""

    def __init__(self, kit: Kit):
        self.kit = kit

    async def __call__(self, *faults: str, question: str = QUESTION) -> Reply:
        return await self.kit.ask(question, self.kit.session(uuid.uuid4().hex), faults=faults)


@asynccontextmanager
async def asking(
    deck: Deck | None = None, models: Any = None, settings: Settings = EMBEDDED
) -> AsyncGenerator[Asking]:
    async with open_kit(settings, deck=deck, models=models, faults=True) as kit:
        yield Asking(kit)


def quick(seconds: float) -> Deck:
    """The shipped deck, with a shorter time for every sub-agent."""
    deck = load_deck(EMBEDDED.deck)
    cards = [
        card
        if card.sub_agents
        else card.model_copy(
            update={
                "policy": card.policy.model_copy(update={"time_budget_ms": int(seconds * 1000)})
            }
        )
        for card in deck.cards.values()
    ]
    return Deck.of(
        cards,
        deck.blocks.values(),
        deck.settings,
        [m for m in deck.models.values() if m.key != "offline"],
        flags=deck.flags,
        dangers=deck.dangers.values(),
    )


def shown(reply: Reply) -> str:
    """All that a person reads of a turn: lead, answer, steps with their progress and verdict."""
    view = advance(TurnView(turn_id=reply.turn_id), reply.events)
    said = transcript(reply.events)
    steps = [f"{step.label} {step.verdict} {' '.join(step.lines)}" for step in view.steps]
    return "\n".join([said.lead, said.answer, reply.text, *steps])


def errors(reply: Reply) -> str:
    return "\n".join(span.error for span in reply.trace.spans if span.error)


def plain(reply: Reply) -> None:
    """The promise of PC2-FR-14: a sentence, a list or more, and nothing in it that only a machine says."""
    assert re.search(r"[A-Z].+([.!?]|:\n- .+)", reply.text)
    assert not [mark for mark in MARKS if mark in shown(reply)]
    assert not RAW_WORDS.search(reply.text), reply.text
    assert reply.events[-1].kind == "completed"


def heard(reply: Reply, *agents: str) -> None:
    """The answers of these agents are in the reply, and the others' are not."""
    assert {agent for agent in AGENTS if TELLS[agent] in reply.text} == set(agents), reply.text


def owned(reply: Reply, *agents: str) -> None:
    """The reply says of exactly these agents that they gave no answer."""
    assert set(re.findall(r"wasn't able to get an answer about (\w+)", reply.text)) == set(
        agents
    ), reply.text


# ── the catalogue ──────────────────────────────────────────────────────────────────────────────────


def test_every_kind_is_in_the_catalogue_with_a_sentence_for_a_person():
    assert set(CATALOGUE) == set(KINDS) and set(ALIASES.values()) <= set(KINDS)
    told = {Fault(where="offer_details", kind=kind).label for kind in KINDS}
    assert len(told) == len(KINDS)
    assert all(re.fullmatch(r"Offer details [a-z][a-z ,']+", sentence) for sentence in told)
    assert set(LOST) | set(KEPT) == set(kinds_of("shop", "orchestrator"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_is_read_back_from_its_own_words(kind: Kind):
    where = "shop" if CATALOGUE[kind].orchestrator != "only" else "lead"
    fault = Fault(where=where, kind=kind, seconds=2.5 if CATALOGUE[kind].seconds else None)
    assert parse(str(fault), ["shop", "lead"], "lead") == fault


def test_short_words_mean_the_same():
    known = ["shop", "lead"]
    assert parse("shop=timeout", known, "lead") == Fault(where="shop", kind="hang")
    assert parse(" shop = hang:12 ", known, "lead").pause == 12
    assert parse("orchestrator=timeout", known, "lead") == Fault(where="lead", kind="routing_hangs")
    assert parse("shop=stranger", known, "lead").axis == "data"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("shops=timeout", "did you mean 'shop'?"),
        ("shop=timeot", "did you mean 'timeout'?"),
        ("shop=routing_fails", "one of the orchestrator"),
        ("orchestrator=bad_payload", "one of a sub-agent"),
        ("shop", "write agent=kind"),
        ("=timeout", "write agent=kind"),
        ("shop=hang:soon", "seconds are a number"),
        ("shop=hang:nan", "seconds are a number"),
        ("shop=raise:3", "only hang"),
    ],
)
def test_a_fault_that_cannot_be_read_says_what_is_known(text: str, words: str):
    with pytest.raises(KitError, match=re.escape(words)):
        parse(text, ["shop", "orchestrator"], "orchestrator")


# ── one part of three fails ────────────────────────────────────────────────────────────────────────


@pytest.mark.req(
    "PC2-S5.8", "PC2-FR-8", "PC1-FR-5", "PC2-S9.2-3", "PC2-S9.5-1", "PC2-AC-5", "PC2-S9.5-3"
)
@pytest.mark.parametrize("agent", AGENTS)
async def test_a_lost_part_is_owned_up_to_and_its_siblings_answers_are_there(agent: str):
    async with asking() as ask:
        for kind, (axis, reasons) in LOST.items():
            reply = await ask(f"{agent}={kind}")
            plain(reply)
            assert reply.status == "ok"
            owned(reply, agent)
            heard(reply, *(other for other in AGENTS if other != agent))
            (failed,) = [outcome for outcome in reply.outcomes if isinstance(outcome, Failure)]
            assert (failed.agent, failed.axis) == (agent, axis) and failed.reason in reasons, kind
            (span,) = [
                span
                for span in reply.trace.spans
                if span.kind == "agent" and span.status == "error"
            ]
            assert (
                span.name == agent
                and span.error
                and span.error.startswith(f"{axis}: {failed.reason}")
            )
            (told,) = [event.body for event in reply.events if isinstance(event.body, AgentError)]
            assert (told.agent, told.axis) == (agent, axis)
            assert (RAW in errors(reply)) == (kind in ("raise", "instantiation"))
            called = [
                span for span in reply.trace.spans if span.kind == "model" and span.agent == agent
            ]
            assert bool(called) == (kind != "instantiation")


@pytest.mark.parametrize("agent", AGENTS)
async def test_a_part_that_copes_keeps_its_answer(agent: str):
    async with asking() as ask:
        for kind in KEPT:
            reply = await ask(f"{agent}={kind}")
            plain(reply)
            if (agent, kind) == (
                "support",
                "partial_envelope",
            ):  # its service streams: a part of it is a stream cut short
                owned(reply, "support")
                heard(reply, "rewards", "shop")
                continue
            heard(reply, *AGENTS)
            assert all(isinstance(outcome, Answer) for outcome in reply.outcomes)
            assert ("incomplete" in reply.text) == (kind == "partial_envelope")


@pytest.mark.req("PC2-AC-5", "PC2-S9.5-3", "PC2-FR-14")
async def test_every_vertical_alone_without_data_says_so_and_names_no_source():
    async with asking() as ask:
        for agent, question in EVERY_VERTICAL.items():
            reply = await ask(f"{agent}=error_envelope", question=question)
            plain(reply)
            owned(reply, agent.split("_")[0])
            assert [(outcome.agent, outcome.kind) for outcome in reply.outcomes] == [
                (agent, "failure")
            ]
            assert "ledger" not in shown(reply) and RAW not in stored(reply)
            statuses = {
                event.body.status for event in reply.events if isinstance(event.body, Envelope)
            }
            assert statuses == (set() if agent == "support" else {"error"})


@pytest.mark.req("PC2-S9.5-7")
@pytest.mark.parametrize("agent", AGENTS)
async def test_a_progress_word_outside_the_vocabulary_reaches_nobody(agent: str):
    async with asking() as ask:
        plainly, strange = await ask(), await ask(f"{agent}=malformed_status")
    assert STRANGE_STATUS not in shown(strange)
    lines = [
        [e.body.text for e in reply.events if isinstance(e.body, StatusLine)]
        for reply in (plainly, strange)
    ]
    assert sorted(lines[0]) == sorted(lines[1]) and len(lines[0]) >= 3
    sent = [e.body.status for e in strange.events if isinstance(e.body, Status)]
    assert UNKNOWN in sent and STRANGE_STATUS not in stored(strange), "counted, and kept nowhere"


# ── every ratio ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("PC2-S9.5-5", "PC2-AC-8", "PC2-S5.8", "PC2-S9.5-2")
async def test_of_three_any_may_fail_on_any_axis_and_the_others_are_presented():
    kinds = dict(zip(AGENTS, ("raise", "error_envelope", "timeout"), strict=True))
    async with asking() as ask:
        for failing in (some for n in range(4) for some in combinations(AGENTS, n)):
            reply = await ask(*(f"{agent}={kinds[agent]}" for agent in failing))
            plain(reply)
            owned(reply, *failing)
            heard(reply, *(agent for agent in AGENTS if agent not in failing))
            spans = {span.name: span.status for span in reply.trace.spans if span.kind == "agent"}
            assert spans == {agent: "error" if agent in failing else "ok" for agent in AGENTS}
            assert {
                line.agent for line in reply.routing.outcomes if line.result != "success"
            } == set(failing)


# ── the orchestrator ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("PC2-S5.8b")
@pytest.mark.parametrize(("kind", "seconds"), [("composing_fails", 0.0), ("composing_hangs", 10.0)])
async def test_without_a_composer_the_answers_in_hand_are_the_reply(kind: str, seconds: float):
    async with asking() as ask:
        whole, partly = (
            await ask(f"orchestrator={kind}"),
            await ask(f"orchestrator={kind}", "shop=raise"),
        )
    for reply, missing in ((whole, ()), (partly, ("shop",))):
        plain(reply)
        heard(reply, *(agent for agent in AGENTS if agent not in missing))
        owned(reply, *missing)
        assert reply.events[-1].at == seconds and transcript(reply.events).answer == reply.text
        assert reply.status == "ok", "each part that has an answer was answered"
        composing = [span for span in reply.trace.spans if span.name.startswith("compose")]
        assert composing and composing[-1].status == "error"


@pytest.mark.req("PC2-S5.8b")
@pytest.mark.parametrize(("kind", "seconds"), [("routing_fails", 0.0), ("routing_hangs", 10.0)])
async def test_without_a_router_the_reply_is_one_plain_sentence_and_no_half_of_another(
    kind: str, seconds: float
):
    async with asking() as ask:
        for question in (QUESTION, EVERY_VERTICAL["rewards"]):
            reply = await ask(f"orchestrator={kind}", question=question)
            plain(reply)
            assert "wasn't able to look into that" in reply.text
            said = transcript(reply.events)
            assert (said.lead, said.answer) == ("", reply.text), (
                "the half of a lead that was spoken is taken back"
            )
            assert not reply.outcomes and reply.events[-1].at == seconds
            assert RAW in errors(reply) or kind == "routing_hangs"


@pytest.mark.req("PC2-S5.8b")
async def test_an_agent_that_cannot_be_started_costs_no_model_call_and_no_sibling():
    async with asking() as ask:
        reply = await ask("rewards=instantiation", "shop=instantiation")
    plain(reply)
    owned(reply, "rewards", "shop")
    heard(reply, "support")
    assert {span.agent for span in reply.trace.spans if span.kind == "model"} == {
        "orchestrator",
        "support",
    }


async def test_an_orchestrator_that_repeats_an_id_loses_no_answer():
    async with asking() as ask:
        reply = await ask("orchestrator=repeats_id")
    plain(reply)
    heard(reply, *AGENTS)
    assert len({outcome.call_id for outcome in reply.outcomes}) == len(reply.outcomes) >= 3


@pytest.mark.req("PC2-FR-15c")
async def test_an_orchestrator_that_asks_nobody_known_is_told_and_no_person_reads_of_it():
    async with asking() as ask:
        reply = await ask("orchestrator=unknown_tool")
    plain(reply)
    heard(reply, *AGENTS)
    owned(reply)
    assert {o.agent for o in reply.outcomes} == set(AGENTS) and "weather" not in reply.text


@pytest.mark.parametrize("kind", ["slow_drip", "drops_call"])
async def test_an_orchestrator_that_is_no_help_still_ends_in_plain_words(kind: str):
    async with asking() as ask:
        for question in (QUESTION, EVERY_VERTICAL["shop"]):
            reply = await ask(f"orchestrator={kind}", question=question)
            plain(reply)
            assert not [
                a
                for a in reply.outcomes
                if isinstance(a, Answer) and TELLS[a.agent] not in reply.text
            ]


async def test_an_orchestrator_that_refuses_is_heard_in_its_words_and_nobody_is_asked():
    async with asking() as ask:
        for question in (QUESTION, EVERY_VERTICAL["shop"]):
            reply = await ask("orchestrator=refuses", question=question)
            plain(reply)
            assert (reply.status, reply.text) == ("failed", REFUSAL)
            assert not reply.outcomes


async def test_a_forgotten_call_is_forgotten_once():
    async with asking() as ask:
        model = ask.kit.team.orchestrator.model.runnable
        with inject_faults([Fault(where="orchestrator", kind="drops_call")]):
            first, second = [
                len((await model.ainvoke([HumanMessage(QUESTION)])).tool_calls) for _ in range(2)
            ]
    assert (first, second) == (2, 3)


# ── time ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("PC2-S9.5-2", "PC1-S9.5-1")
@pytest.mark.parametrize("agent", AGENTS)
async def test_twelve_seconds_of_silence_end_at_the_agents_two_and_the_answer_follows(agent: str):
    async with asking(quick(2.0)) as ask:
        reply = await ask(f"{agent}=hang:12")
    (span,) = [span for span in reply.trace.spans if span.kind == "agent" and span.name == agent]
    assert span.seconds == 2.0 and span.error and span.error.startswith("invocation: timeout")
    assert reply.events[-1].at == 2.0
    plain(reply)
    owned(reply, agent)
    heard(reply, *(other for other in AGENTS if other != agent))


@pytest.mark.req("PC2-S5.8")
async def test_of_several_faults_of_one_upstream_each_one_strikes():
    async with asking() as ask:
        partly = await ask("rewards=partial_envelope")
        both = await ask("rewards=partial_envelope", "rewards=stranger")
    assert "incomplete" in partly.text
    owned(both, "rewards")
    assert [outcome.reason for outcome in both.outcomes if isinstance(outcome, Failure)] == [
        "principal_mismatch"
    ]


async def test_a_hang_that_ends_in_time_costs_only_its_time():
    async with asking() as ask:
        reply = await ask("rewards=hang:3.5")
    assert reply.events[-1].at == pytest.approx(7.0), "two model calls"
    heard(reply, *AGENTS)


@pytest.mark.realtime
async def test_in_real_time_the_same_silence_ends_at_its_budget_too():
    async with asking(quick(2.0)) as ask:
        await ask(question="hello")
        began = time.perf_counter()
        reply = await ask("rewards=hang:600")
        took = time.perf_counter() - began
    (span,) = [
        span for span in reply.trace.spans if span.kind == "agent" and span.name == "rewards"
    ]
    assert 2.0 <= span.seconds <= took < 120
    owned(reply, "rewards")


# ── a foreign principal ────────────────────────────────────────────────────────────────────────────


class Listening(OfflineModel):
    """The offline stand-in, which keeps what it was shown."""

    _seen: list[str] = PrivateAttr(default_factory=list[str])

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        self._seen.extend(str(message) for message in messages)
        async for chunk in super()._astream(messages, *args, **kwargs):
            yield chunk


def stored(reply: Reply) -> str:
    return "\n".join(event.model_dump_json() for event in reply.events)


def planted(text: str) -> list[str]:
    return [
        mark
        for mark in (CANARY, str(CANARY_NUMBER), f"{CANARY_NUMBER:,}", "stranger")
        if mark in text
    ]


@pytest.mark.parametrize(
    "kind", ["foreign_principal", "error_envelope", "version_break", "bad_payload"]
)
async def test_what_a_foreign_or_broken_payload_holds_is_found_nowhere(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    model = Listening(pace=0.0, think=0.0)
    settings = EMBEDDED.with_(store=str(tmp_path / "kit.db"))
    async with asking(models=model, settings=settings) as ask:
        for agent, question in EVERY_VERTICAL.items():
            reply = await ask(f"{agent}={kind}", question=question)
            plain(reply)
            owned(reply, agent.split("_")[0])
            record = ask.kit.store.turn(reply.turn_id, OPERATOR)
            assert record is not None
            found = [
                stored(reply),
                shown(reply),
                str(reply.trace),
                str(reply.outcomes),
                export(record, reply.events),
            ]
            assert not planted("\n".join(found)), agent
            said = [event.body for event in reply.events if isinstance(event.body, Envelope)]
            if kind == "foreign_principal":
                assert said and not any(envelope.principal_verified for envelope in said), agent
                assert {o.reason for o in reply.outcomes if isinstance(o, Failure)} == {
                    "principal_mismatch"
                }
                assert len(said) == len([s for s in reply.trace.spans if s.kind == "tool"]), (
                    "asked once, not again"
                )
            elif agent != "support":
                assert all(envelope.version_ok == (kind != "version_break") for envelope in said)
    assert len(model._seen) > 16 and any(
        "unavailable right now" in message for message in model._seen
    )
    assert not planted("\n".join(model._seen)) and not planted(caplog.text.replace("foreign", ""))
    kept = content_of(tmp_path)
    assert "able to get an answer about rewards" in kept and not planted(kept)


async def test_a_planted_payload_would_be_told_if_nobody_looked_at_its_principal():
    told = set[tuple[str, str]]()
    me = Principal(tenant_id="acme", user_id="u-001")
    transport = StreamingASGITransport(context_app(load_world(EMBEDDED.data), faults=by_header))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://x", headers={HEADER: "foreign_principal"}
    ) as http:
        for (domain, enricher), wording in WORDINGS.items():
            asking_for = {"query": "receipt"} if domain == "support" else {}
            reply = await HttpEnrich(http)(
                EnricherRequest(
                    request_id="r",
                    principal=me,
                    domain_type=domain,
                    enricher_id=enricher,
                    params=asking_for,
                )
            )
            assert reply.principal != me and reply.status == "ok"
            if planted(wording.render(wording.payload.model_validate(reply.payload)).text):
                told.add((domain, enricher))
    assert told == set(WORDINGS)


# ── switched on, and only where ────────────────────────────────────────────────────────────────────


async def test_faults_of_one_turn_are_not_those_of_its_neighbour_or_its_successor():
    async with open_kit(EMBEDDED, faults=True) as kit:
        broken = kit.ask(QUESTION, kit.session("a"), faults=["rewards=raise", "shop=down"])
        neighbour = kit.ask(QUESTION, kit.session("b"))
        owned(await broken, "rewards", "shop")
        for whole in (await neighbour, await kit.ask(QUESTION, kit.session("a"))):
            heard(whole, *AGENTS)
            owned(whole)


async def test_a_kit_opened_without_faults_has_nothing_in_place_and_says_how_to_get_it():
    async with open_kit(EMBEDDED) as kit:
        assert not any(
            isinstance(agent.model.runnable, FaultyModel)  # type: ignore
            for agent in kit.team.agents.values()
        )
        assert (await kit.ask(EVERY_VERTICAL["rewards"], kit.session("s"))).status == "ok"
        with pytest.raises(FaultError, match=re.escape("open_kit(faults=True)")):
            kit.ask(QUESTION, kit.session("s"), faults=["rewards=timeout"])


async def test_a_fault_nobody_knows_starts_no_turn():
    async with open_kit(EMBEDDED, faults=True) as kit:
        with pytest.raises(UnknownId, match="did you mean 'rewards'"):
            kit.ask(QUESTION, kit.session("s"), faults=["reward=timeout"])
        with pytest.raises(UnknownId, match="nobody"):
            kit.ask(QUESTION, kit.session("s"), faults=[Fault(where="nobody", kind="raise")])
        assert not list(kit.store.turns(session_id="s", limit=5))


async def test_a_model_that_could_fail_streams_and_binds_like_its_own():
    tools = [
        {
            "type": "function",
            "function": {"name": "ask_x", "description": "Coffee deals.", "parameters": {}},
        }
    ]
    own, wrapped = OfflineModel().paced(0), FaultyModel("x", OfflineModel().paced(0))
    request = [HumanMessage("find coffee deals")]
    for ours, theirs in ((wrapped, own), (wrapped.bind_tools(tools), own.bind_tools(tools))):
        mine = [(type(c), c.content, c.tool_calls) async for c in ours.astream(request)]
        assert mine == [(type(c), c.content, c.tool_calls) async for c in theirs.astream(request)]
        assert len(mine) > 1


# ── from everywhere ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.realtime
@pytest.mark.req("PC2-AC-7", "PC2-FR-11")
async def test_every_request_of_every_vertical_carries_the_sessions_principal_and_none_is_refused():
    asked: list[str | None] = []
    app = world_app(load_world(EMBEDDED.data), Library(MANGA), latency=0.0)

    async def listening(scope: Any, receive: Any, send: Any) -> None:
        asked.append(dict(scope["headers"]).get(b"x-principal", b"").decode())
        await app(scope, receive, send)

    async with (
        serving(listening) as url,
        open_kit(EMBEDDED.with_(variables={"KIT_UPSTREAM_URL": url})) as kit,
    ):
        for agent, question in EVERY_VERTICAL.items():
            reply = await kit.ask(question, kit.session(agent, tenant="globex"))
            assert [outcome.agent for outcome in reply.outcomes if isinstance(outcome, Answer)] == [
                agent
            ]
        who = str(kit.session("s", tenant="globex").principal)
        assert asked and set(asked) == {who}
        async with httpx.AsyncClient() as http:
            counts = (await http.get(f"{url}/context/v1/metrics")).json()
    assert (
        set(counts) == {"requests", "status_ok"} and counts["requests"] == counts["status_ok"] >= 7
    )


@pytest.mark.realtime
@pytest.mark.req("PC2-S5.8")
async def test_over_a_socket_the_services_fail_the_same_and_untold_requests_carry_nothing():
    heads: list[str | None] = []
    app = world_app(load_world(EMBEDDED.data), Library(MANGA), latency=0.0)

    async def listening(scope: Any, receive: Any, send: Any) -> None:
        heads.append(dict(scope["headers"]).get(HEADER.encode()))
        await app(scope, receive, send)

    async with (
        serving(listening) as url,
        asking(settings=EMBEDDED.with_(variables={"KIT_UPSTREAM_URL": url})) as ask,
    ):
        whole = await ask()
        assert len(heads) >= 3 and not any(heads)
        broken = await ask("rewards=stranger", "support=down")
    heard(whole, *AGENTS)
    owned(broken, "rewards", "support")
    heard(broken, "shop")
    assert {head for head in heads if head} == {b"foreign_principal", b"error_envelope"}


@pytest.mark.req("PC2-S5.8")
def test_on_the_command_line_a_fault_is_an_option_and_a_wrong_one_a_sentence():
    def run(*arguments: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        environ = {"KIT_STORE": ":memory:", "KIT_PACE": "0"}
        with (
            mock.patch.dict(os.environ, environ, clear=True),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            code = main(["ask", *arguments, QUESTION])
        return code, out.getvalue(), err.getvalue()

    code, out, err = run("--fault", "rewards=down", "--fault", "shop=raise")
    assert (
        code == 0
        and "made to fail: rewards=down, shop=raise" in out
        and TELLS["support"] in " ".join(out.split())
    )
    assert (
        "wasn't able to get an answer about rewards" in " ".join(out.split())
        and "did not happen" not in err
    )
    _, _, err = run("--fault", "rewards=down", "--fault", "play=hang")
    assert "did not happen in this turn: play=hang\n" in err
    code, _, err = run("--fault", "rewards=timeot")
    assert code == 2 and err.startswith("kit: ") and "timeout" in err


@pytest.mark.req("PC2-S5.8")
def test_the_app_starts_turns_that_fail_on_each_axis(tmp_path: Path):
    host = Host(EMBEDDED.with_(store=str(tmp_path / "kit.db")))
    try:
        session = host.kit.session("s")
        for kind, note in (("raise", "problem"), ("error_envelope", "could not reach its data")):
            turn = host.start(QUESTION, session, [Fault(where="rewards", kind=kind)])  # type: ignore[arg-type]
            while not host.follow(turn, timeout=5).done:
                pass
            view = next(view for view in host.views(session) if view.turn_id == turn)
            assert {step.agent: note in step.verdict for step in view.steps} == {
                a: a == "rewards" for a in AGENTS
            }
    finally:
        host.close()


@pytest.mark.req("PC2-S5.8")
def test_a_plain_script_can_do_it_too():
    async def script() -> Reply:
        async with open_kit(EMBEDDED, faults=True) as kit:
            return await kit.ask(
                QUESTION, kit.session("s"), faults=["rewards=timeout", "shop=stranger"]
            )

    owned(run_virtual(script()), "rewards", "shop")
