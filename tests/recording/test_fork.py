"""A turn forked at a span: what came before is played, and from there on another model, pattern or prompt answers."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.tools import StructuredTool

from kit import PATTERNS, Kit, Reply, Settings, open_kit
from kit.compose.deck import Deck, load_deck
from kit.compose.registry import Registry
from kit.compose.topology import Topology
from kit.core.bodies.call import ToolEnded
from kit.core.bodies.turn import Completed, Fork
from kit.core.card import AgentCard, Handoff, HandoffField
from kit.core.context import OPERATOR, Principal
from kit.core.errors import CassetteError, FaultError, ForkError, UnknownId
from kit.core.picture import Picture
from kit.core.trace import Span
from kit.metrics.summary import metrics
from kit.models.scripted import Line, ScriptedModel
from kit.settings import HOME
from kit.stores.model_request import model_request
from kit.tools.tool import ToolResult
from tests.kits import (
    answering,
    asks,
    bodies,
    desk_deck,
    failing,
    failures,
    leading,
    small_deck,
    stitched,
)

MIXED = "What are my points, any burger deals near me, and where can I buy a kettle?"


def settings(store: Path | str = ":memory:") -> Settings:
    return Settings.read({}).with_(model="offline", store=str(store), pace=0.0)


def spans(reply: Reply) -> list[Span]:
    """The model calls and sub-agents of a turn: what it can be forked at."""
    return [span for span in reply.trace.spans if span.kind in ("model", "agent")]


def span(reply: Reply, name: str, agent: str = "") -> str:
    """The id of the first span whose name begins so."""
    return next(
        one.id
        for one in reply.trace.spans
        if one.name.startswith(name) and agent in ("", one.agent)
    )


def error(reply: Reply) -> str:
    end = reply.events[-1].body
    assert isinstance(end, Completed)
    return end.error or ""


@pytest.mark.req("K-32")
@pytest.mark.parametrize("pattern", PATTERNS)
async def test_forked_at_any_span_on_the_same_model_a_turn_ends_as_it_did(pattern: str):
    """With a conversation before it and a part that fails on purpose. Nothing is called before the
    span, nothing after it is played, and the conversation stays as it was."""
    async with open_kit(settings(), faults=True) as kit:
        talk = kit.session("talk")
        await kit.ask("How many points do I have?", talk, pattern)
        told = await kit.ask(MIXED, talk, pattern, faults=["restaurants=error_envelope"])
        before = kit.store.history(talk.key)
        # Every span in one pattern, some of them in each of the others.
        for at in spans(told)[:: 2 if pattern == "mediated" else 8]:
            if pattern == "a2a" and at.name.startswith("work"):
                with pytest.raises(ForkError, match="fork at its own span"):
                    kit.fork(told.turn_id, at.id)
                continue
            reply = await kit.fork(told.turn_id, at.id)
            assert (reply.status, error(reply)) == ("ok", "")
            if pattern == "direct":
                # Who is done first speaks first, and what is called again takes a time of its own.
                assert sorted(reply.text.split("\n\n")) == sorted(told.text.split("\n\n"))
            else:
                assert reply.text == told.text
            assert sorted(one.name for one in reply.trace.spans) == sorted(
                one.name for one in told.trace.spans
            )
            calls = [one for one in reply.trace.spans if one.kind == "model" and not one.is_replay]
            assert calls
        assert kit.store.history(talk.key) == before


class Team:
    """An orchestrator over a and b, scripted; `models` counts what each was asked."""

    def __init__(self, b: BaseChatModel | None = None):
        lead = leading(asks("a", "b"))
        self.models = {
            "orchestrator": lead,
            "a": answering("A is known.", 2.0),
            "b": b or answering("B is known.", 3.0),
        }
        self.deck = small_deck(["a", "b"])

    def calls(self) -> dict[str, int]:
        return {
            name: len(model.seen)
            for name, model in self.models.items()
            if isinstance(model, ScriptedModel)
        }


@asynccontextmanager
async def told_of(team: Team) -> AsyncGenerator[tuple[Kit, Reply]]:
    """The kit of a team, and a turn about a and b."""
    async with open_kit(settings(), deck=team.deck, models=team.models, faults=True) as kit:
        yield kit, await kit.ask("about a and b", kit.session("talk"))


def rebound(kit: Kit, models: Mapping[str, BaseChatModel]) -> Kit:
    """The kit, on other scripted models where `fork` names one."""
    stages = kit.stages_on
    return replace(kit, stages_on=lambda name: stages(models if name == "offline" else name))


@pytest.mark.req("K-32")
async def test_would_another_model_have_recovered():
    """The failed sub-agent is asked on another model. No model is called for what was played, and
    the new turn says which was which, in the trace and in the store."""
    broken, healthy = Team(failing(ConnectionError("503"), 1.0)), Team()
    broken.models["orchestrator"].name = "first"
    async with told_of(broken) as (kit, told):
        assert "B is known" not in told.text and broken.calls() == {
            "orchestrator": 3,
            "a": 1,
            "b": 1,
        }
        reply = await rebound(kit, healthy.models).fork(
            told.turn_id, span(told, "b"), model="offline"
        )
        assert reply.text == "A is known. | B is known."
        assert healthy.calls() == {"orchestrator": 1, "a": 0, "b": 1}, (
            "only what came after was called"
        )
        decided = next(one for one in spans(reply) if one.name.startswith("decide"))
        assert decided.attributes["model"] == "first", "under its own name"
        played = [one.name.split(" ")[0] for one in reply.trace.spans if one.is_replay]
        assert played == ["decide", "a", "work"]
        forks = bodies(kit.store.events(reply.turn_id, OPERATOR), Fork)
        assert forks == [Fork(turn_id=told.turn_id, at=span(told, "b"), model="offline")]
        calls = metrics(kit.store).numbers("model_calls_total")
        assert sum(count or 0 for count in calls.values()) == 5 + 2, "what was played counts once"


@pytest.mark.req("K-32")
async def test_what_is_played_keeps_its_times_and_what_is_called_takes_its_own():
    """a took 2 s and is played; b, asked anew, takes 3 s; the composition begins when the slower one has ended."""
    one, other = Team(answering("B was slow.", 5.0)), Team()
    async with told_of(one) as (kit, told):
        reply = await rebound(kit, other.models).fork(
            told.turn_id, span(told, "b"), model="offline"
        )
        ends = {one.name: one.ended for one in reply.trace.spans if one.kind == "agent"}
        assert (
            ends == {"a": 2.0, "b": 3.0}
            and next(s.started for s in spans(reply) if s.name.startswith("compose")) == 3.0
        )
        assert other.calls() == {"orchestrator": 1, "a": 0, "b": 1}


@pytest.mark.req("K-32")
async def test_another_pattern_answers_where_it_asks_the_same_and_says_so_where_it_does_not():
    """Direct decides as mediated does. A supervisor is told to ask one at a time: that does not
    fit, and nothing is called."""
    team = Team()
    async with told_of(team) as (kit, told):
        calls = team.calls()
        reply = await kit.fork(told.turn_id, span(told, "b"), pattern="direct")
        assert reply.status == "ok" and reply.text == "A is known.\n\nB is known."
        assert team.calls() == {**calls, "b": calls["b"] + 1}
        calls = team.calls()
        reply = await kit.fork(told.turn_id, span(told, "b"), pattern="supervisor")
        assert (
            reply.status == "failed"
            and "orchestrator:1 does not ask what was recorded" in error(reply)
        )
        assert "+Call one tool at a time." in error(reply) and team.calls() == calls
        reply = await kit.fork(told.turn_id, span(told, "decide"), pattern="supervisor")
        assert reply.status == "ok" and not any(one.is_replay for one in reply.trace.spans)


@pytest.mark.req("K-32", "PC2-FR-12b")
async def test_what_was_refused_before_the_span_is_refused_after_it():
    """A reply for somebody else bars its lookup for the rest of the turn, and of a turn that goes on from there."""
    asked: list[str] = []

    def peek() -> tuple[str, ToolResult]:
        """Looks."""
        asked.append("peek")
        return "unavailable", ToolResult(text="unavailable", fault="principal_mismatch")

    look = StructuredTool.from_function(peek, response_format="content_and_artifact")
    desk = ScriptedModel(
        lambda seen: Line("Nothing.") if seen[-1].type == "tool" else Line(calls=[("peek", {})])
    )
    once_more = asks("desk", query="the same once more")
    models = {"lead": ScriptedModel(asks("desk"), stitched), "desk": desk}
    async with open_kit(settings(), deck=desk_deck({"peek": look}, "peek"), models=models) as kit:
        first = await kit.ask("What is there?", kit.session("talk"))
        other = {"lead": ScriptedModel(once_more, stitched, stitched), "desk": desk}
        reply = await rebound(kit, other).fork(
            first.turn_id, span(first, "compose"), model="offline"
        )
        assert [end.was_called for end in bodies(reply, ToolEnded)] == [True, False]
        assert asked == ["peek"]


@pytest.mark.req("K-32", "SO-7")
async def test_members_that_were_played_count_against_the_cap_of_what_is_asked_anew():
    race = Topology(kind="race", members=("a", "b"))
    deck = small_deck(["a", "b", "c"], topologies={"chat": {"a": race}})
    models = {
        "orchestrator": ScriptedModel(asks("a"), stitched),
        "a": answering("A is known.", 1.0),
        "b": answering("B is known.", 2.0),
        "c": answering("C is known."),
    }
    async with open_kit(settings(), deck=deck, models=models) as kit:
        first = await kit.ask("about a", kit.session("talk"), cap=2)
        other = {**models, "orchestrator": ScriptedModel(asks("c"), stitched)}
        reply = await rebound(kit, other).fork(
            first.turn_id, span(first, "compose"), model="offline"
        )
        assert "C is known" not in reply.text and reply.routing.dropped == ("c",)


@pytest.mark.req("K-32")
async def test_another_prompt_is_sent_from_the_span_on_and_kept():
    team = Team()
    async with told_of(team) as (kit, told):
        reply = await kit.fork(told.turn_id, span(told, "compose"), prompt="Be terse.")
        turn = kit.store.turn(reply.turn_id, OPERATOR)
        assert turn is not None and reply.status == "ok"
        request = model_request(kit.store, turn, span(reply, "compose"))
        lead = team.models["orchestrator"]
        assert isinstance(lead, ScriptedModel) and request is not None
        assert request.prompt == "Be terse." and request.system.startswith("Be terse.\n\nDate: ")
        assert request.system == lead.seen[-1][0].content


@pytest.mark.req("K-32")
async def test_a_card_that_changed_since_is_said_and_nothing_is_called(tmp_path: Path):
    deck = load_deck(HOME / "cards" / "consumer")
    async with open_kit(settings(tmp_path / "kit.db"), deck=deck) as kit:
        told = await kit.ask(MIXED, kit.session("talk"))
        turns = len(kit.store.turns())
    block = deck.blocks[deck.cards["rewards"].prompt_blocks[0]]
    newer = block.model_copy(update={"text": f"{block.text}\nBe terse."})
    async with open_kit(settings(tmp_path / "kit.db"), deck=with_block(deck, newer)) as kit:
        changed = r"(?s)the card of rewards does not ask what was recorded: prompt.*\+Be terse\."
        with pytest.raises(CassetteError, match=changed):
            kit.fork(told.turn_id, span(told, "compose"))
        assert len(kit.store.turns()) == turns
        anew = await kit.fork(told.turn_id, span(told, "rewards"))
        assert anew.status == "ok", "there rewards is asked anew"


def with_block(deck: Deck, block: object) -> Deck:
    return replace(deck, blocks=Registry("block", {**deck.blocks, block.id: block}))  # type: ignore[attr-defined]


@pytest.mark.req("K-32")
async def test_nobody_forks_the_turn_of_somebody_else():
    team = Team()
    async with told_of(team) as (kit, told):
        bob = Principal(tenant_id="acme", user_id="bob")
        for turn_id in (told.turn_id, "unknown"):
            with pytest.raises(ForkError, match="there is no turn"):
                kit.fork(turn_id, span(told, "b"), who=bob)


@pytest.mark.req("K-32")
async def test_what_no_store_keeps_cannot_be_played():
    """Pictures and personal values are not in a trace; faults need a kit that has them; and only
    calls can be forked at."""
    card = AgentCard(
        id="a",
        description="d",
        model="offline",
        handoff=Handoff(fields={"email": HandoffField(pii=True)}),
    )
    call = {"query": "q", "intent_count": 1, "email": "ann@example.org"}
    team = Team()
    team.models["orchestrator"] = leading(Line("Let me look.", calls=[("ask_a", call)]))
    team.deck = small_deck(["a", "b"], [card])
    async with told_of(team) as (kit, told):
        with pytest.raises(ForkError, match="personal values"):
            kit.fork(told.turn_id, span(told, "compose"))
    async with told_of(Team()) as (kit, _):
        picture = Picture.of(b"\x89PNG\r\n\x1a\n" + b"0" * 40)
        told = await kit.ask("what is this", kit.session("two"), images=[picture])
        with pytest.raises(ForkError, match="pictures"):
            kit.fork(told.turn_id, span(told, "decide"))
        told = await kit.ask("about a and b", kit.session("three"), faults=["a=timeout"])
        with pytest.raises(ForkError, match="no model call and no sub-agent"):
            kit.fork(told.turn_id, "s1")
        with pytest.raises(FaultError, match="faults=True"):
            replace(kit, faults=False).fork(told.turn_id, span(told, "b"))


async def test_a_fork_without_the_faults_of_its_turn_recovers_and_one_with_others_fails_by_them():
    async with open_kit(settings(), faults=True) as kit:
        told = await kit.ask(MIXED, kit.session("one"), faults=["restaurants=raise"])
        assert [failure.agent for failure in failures(told)] == ["restaurants"]
        lost = span(told, "restaurants")
        recovered = await kit.fork(told.turn_id, lost, faults=[])
        assert not failures(recovered)
        assert bodies(recovered, Fork)[0].faults == ()
        other = await kit.fork(told.turn_id, span(told, "decide"), faults=["shop=raise"])
        assert [failure.agent for failure in failures(other)] == ["shop"]
        assert bodies(other, Fork)[0].faults == ("shop=raise",)
        with pytest.raises(UnknownId):
            kit.fork(told.turn_id, lost, faults=["nobody=raise"])
