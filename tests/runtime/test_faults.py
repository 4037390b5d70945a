"""Everything that can be made to go wrong, on the shipped deck: one plain reply, the answers in
hand, reasons in the trace."""

import re
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import cycle
from typing import Any

import pytest

from kit.compose.deck import Deck
from kit.core.bodies.call import AgentError, Envelope
from kit.core.errors import FaultError, KitError, UnknownId
from kit.core.fault import (
    CANARY,
    CANARY_NUMBER,
    RAW,
    STRANGE_STATUS,
    Fault,
    Kind,
    kinds_of,
    parse,
)
from kit.core.outcome import Answer
from kit.core.transcript import transcript
from kit.models.faulty import FaultyModel
from kit.runtime.turn import Reply
from kit.settings import Settings
from kit.ui.shared.turn_fold import advance
from kit.ui.shared.turn_view import TurnView
from kit.wire import Kit, open_kit
from tests.cli.test_cli import refused, run
from tests.kits import EMBEDDED, bodies, failures, spans

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
LOST: dict[Kind, set[str]] = {
    "raise": {"exception"},
    "hang": {"timeout"},
    "slow_drip": {"timeout"},
    "instantiation": {"exception"},
    "refuses": {"refusal", "insufficient"},
    "error_envelope": {"unavailable"},
    "foreign_principal": {"principal_mismatch"},
    "bad_payload": {"unavailable", "contract_violation"},
    "version_break": {"unavailable", "contract_violation"},
}
"""Kinds after which an agent has no answer, with what its outcome says."""
OF_DATA = ("error_envelope", "foreign_principal", "bad_payload", "version_break")
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


def test_a_fault_has_short_words_too_and_each_kind_is_tried_here():
    known = ["shop", "lead"]
    assert parse("shop=timeout", known, "lead") == Fault(where="shop", kind="hang")
    assert parse(" shop = hang:12 ", known, "lead").pause == 12
    assert parse("orchestrator=timeout", known, "lead") == Fault(where="lead", kind="routing_hangs")
    assert set(LOST) | set(KEPT) == set(kinds_of("shop", "orchestrator"))


# ── one part of three fails ────────────────────────────────────────────────────────────────────────


@pytest.mark.req(
    *("PC2-S5.8", "PC2-FR-8", "PC1-FR-5", "PC2-S9.2-3", "PC2-S9.2-5"),
    *("PC2-S9.5-1", "PC2-S9.5-2", "PC1-S9.5-1", "PC2-AC-5", "PC2-S9.5-3"),
)
async def test_a_lost_part_is_owned_up_to_and_its_siblings_answers_are_there():
    async with asking() as ask:
        for (kind, reasons), agent in zip(LOST.items(), cycle(AGENTS), strict=False):
            axis = "data" if kind in OF_DATA else "invocation"
            reply = await ask(f"{agent}={kind}")
            plain(reply)
            assert reply.status == "ok"
            owned(reply, agent)
            heard(reply, *(other for other in AGENTS if other != agent))
            (failed,) = failures(reply)
            assert (failed.agent, failed.axis) == (agent, axis) and failed.reason in reasons, kind
            (span,) = [span for span in spans(reply, "agent") if span.status == "error"]
            assert (
                span.name == agent
                and span.error
                and span.error.startswith(f"{axis}: {failed.reason}")
            )
            (told,) = bodies(reply, AgentError)
            assert (told.agent, told.axis) == (agent, axis)
            assert (RAW in errors(reply)) == (kind in ("raise", "instantiation"))
            called = [span for span in spans(reply, "model") if span.agent == agent]
            assert bool(called) == (kind != "instantiation")
            verified = [body.principal_verified for body in bodies(reply, Envelope)]
            assert all(verified) == (kind != "foreign_principal")


@pytest.mark.req("PC2-S9.2-5")
async def test_a_part_that_copes_keeps_its_answer():
    async with asking() as ask:
        for kind in KEPT:
            reply = await ask(f"rewards={kind}")
            plain(reply)
            heard(reply, *AGENTS)
            assert all(isinstance(outcome, Answer) for outcome in reply.outcomes)
            assert ("incomplete" in reply.text) == (kind == "partial_envelope")
        # The service of support streams: a part of its answer is a stream that was cut short.
        owned(await ask("support=partial_envelope"), "support")


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
        for fault in ("reward=timeout", Fault(where="reward", kind="raise")):
            with pytest.raises(UnknownId, match="did you mean 'rewards'"):
                kit.ask(QUESTION, kit.session("s"), faults=[fault])
        assert not list(kit.store.turns(session_id="s", limit=5))


# ── from everywhere ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.req("PC2-S5.8")
def test_on_the_command_line_a_fault_is_an_option_and_a_wrong_one_a_sentence():
    partly = run("ask", "--fault", "rewards=down", "--fault", "shop=raise", QUESTION)
    told = " ".join(partly.stdout.split())
    assert partly.returncode == 0 and "made to fail: rewards=down, shop=raise" in told
    assert TELLS["support"] in told and "wasn't able to get an answer about rewards" in told
    assert "did not happen" not in partly.stderr
    idle = run("ask", "--fault", "rewards=down", "--fault", "play=hang", QUESTION)
    assert "did not happen in this turn: play=hang\n" in idle.stderr
    refused(run("ask", "--fault", "rewards=timeot", QUESTION), "timeout")
