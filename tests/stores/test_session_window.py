"""A session is what its turns said: the window that a reader of the store gets is what the next prompt is fed from."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, SystemMessage, ToolMessage

from kit import Kit, Reply, open_kit
from kit.core.card import AgentCard
from kit.core.context import Session
from kit.core.documents.document import AgentSession
from kit.core.record import LINES, UNANSWERED, Note
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.clock import run_virtual
from kit.runtime.memory import most_lines
from kit.runtime.turn import run_turn
from kit.settings import Settings
from kit.stores.opening import open_store
from kit.stores.turn_store import TurnStore
from kit.tools.tool import LimitedTool, ToolLimits
from tests.kits import ALICE, answering, asks, small_deck, small_kit, stitched
from tests.sample_turn import ANN, a_turn, finish
from tests.stores.conftest import DATABASES, new_place

TALK = Session(id="talk", principal=ANN)
Lines = list[tuple[str, str]]
STEPS = {
    "ok": "ok",
    "points": "ok",
    "failed": "failed",
    "cancelled": "cancelled",
    "paused": "paused",
}
"""Messages, and how their turns end."""


async def sign(paper: str) -> str:
    """Sign a paper."""
    return f"Signed: {paper}."


def told(messages: list[BaseMessage]) -> Lines:
    """What a model is told of earlier turns."""
    lines = [message for message in messages[:-1] if not isinstance(message, SystemMessage)]
    return [("user" if line.type == "human" else "assistant", str(line.content)) for line in lines]


def lines_of(session: AgentSession | None) -> Lines:
    return [] if session is None else [(line.role, line.content) for line in session.messages]


class Talk:
    """A conversation over one store, and what was said in it, written down beside it."""

    def __init__(self, place: str):
        self.place = place
        self.said: dict[str, Lines] = {}
        """By turn, in the order in which they ended."""
        self.waiting: list[str] = []
        """Turns that have asked their user."""
        self.told: dict[str, Lines] = {}
        """What each model was told of earlier turns, the last time it was asked something."""

    def opened(self) -> AbstractAsyncContextManager[Kit]:
        models = {
            name: ScriptedModel(self._script(name)) for name in ("orchestrator", "desk", "points")
        }
        cards = [
            AgentCard(id="desk", description="Signs papers.", model="offline", tools=("sign",))
        ]
        tools = {"sign": LimitedTool(sign, ToolLimits(confirm="Sign “{paper}”?"))}
        environment = Settings.read({}).with_(model="offline", store=self.place, pace=0.0)
        return open_kit(
            environment, deck=small_deck(["desk", "points"], cards), models=models, tools=tools
        )

    def _script(self, name: str) -> Callable[[list[BaseMessage]], Line]:
        def say(messages: list[BaseMessage]) -> Line:
            if isinstance(messages[-1], ToolMessage):
                return (
                    stitched(messages)
                    if name == "orchestrator"
                    else Line(str(messages[-1].content))
                )
            self.told[name] = told(messages)
            return _line(name, str(messages[-1].content))

        return say

    async def ask(self, kit: Kit, step: str) -> None:
        """Has a turn that goes as its message says; its models are told what the window of each held before."""
        readers = {"orchestrator": "", "desk": "desk", "points": "points"}
        windows = {
            name: lines_of(await self.window(kit, reader)) for name, reader in readers.items()
        }
        message = f"{step} {len(self.said)}"
        self.told.clear()
        turn = kit.ask(message, TALK)
        if step == "cancelled":
            await asyncio.sleep(1)
            turn.cancel()
        reply = await turn
        assert reply.status == STEPS[step]
        assert "orchestrator" in self.told and self.told == {
            name: windows[name] for name in self.told
        }
        self._note(reply, message)

    async def resume(self, kit: Kit) -> None:
        turn_id = self.waiting.pop(0)
        (_, message), _ = self.said.pop(turn_id)
        reply = await kit.resume(turn_id, True, who=ANN)
        assert reply.status == "ok"
        self._note(reply, message)

    def die(self, step: str) -> None:
        """Leaves what a process leaves that is killed in a turn: the turn as it was accepted, and
        an owner that is gone."""
        turn_id = f"dead {len(self.said)}"
        with closing(open_store(self.place)) as store:
            if (
                step == "killed again"
            ):  # while a turn went on that had paused: what was said by then stays
                assert all(map(store.claim_turn, self.waiting[:1]))
                return
            store.begin_turn(a_turn(turn_id, "talk", at=time.time()).replace(message=step), TALK)
        self.said[turn_id] = [("user", step), ("assistant", UNANSWERED)]

    async def window(self, kit: Kit, agent: str = "", limit: int = LINES) -> AgentSession | None:
        return await kit.store.open_documents().sessions.read(ANN, "talk", agent, limit)

    def _note(self, reply: Reply, message: str) -> None:
        self.said[reply.turn_id] = [("user", message), ("assistant", reply.text)]
        if reply.status == "paused":
            self.waiting.append(reply.turn_id)


def _line(name: str, message: str) -> Line:
    match name, message.split()[0]:
        case "points", _:
            return Line("4,975.")
        case "desk", _:
            return Line(calls=[("sign", {"paper": "a lease"})])
        case _, "failed":
            return Line(error=OSError("no route"))
        case _, "cancelled":
            return Line("Let me think", delay=600)
        case _, "paused":
            return asks("desk")
        case _, "points":
            return asks("points")
        case _:
            return Line(f"Done: {message}.")


async def play(place: str, steps: list[str]) -> None:
    talk = Talk(place)
    async with AsyncExitStack() as stack:
        kit = await stack.enter_async_context(talk.opened())
        for step in steps:
            if step.startswith("killed"):
                await stack.aclose()
                talk.die(step)
                kit = await stack.enter_async_context(talk.opened())
            elif step != "resumed":
                await talk.ask(kit, step)
            elif talk.waiting:
                await talk.resume(kit)
            said = [line for lines in talk.said.values() for line in lines]
            session = await talk.window(kit)
            assert lines_of(session) == said
            assert lines_of(await talk.window(kit, limit=3)) == said[-3:]
            if session is not None:
                newest = kit.store.turns("talk", limit=1)[0]
                assert session.state == ("paused" if newest.status == "paused" else "idle")


@pytest.mark.req("AS-28")
@settings(max_examples=4, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from([*STEPS, "resumed", "killed", "killed again"]), max_size=6))
@example(
    [
        "points",
        "paused",
        "killed",
        "ok",
        "killed again",
        "resumed",
        "points",
        "failed",
        "points",
        "cancelled",
        "ok",
    ]
)
@pytest.mark.parametrize("database", DATABASES)
def test_the_window_is_what_was_said_and_feeds_the_prompt_whatever_became_of_the_turns(
    database: str,
    steps: list[str],
) -> None:
    with TemporaryDirectory() as folder:
        run_virtual(play(new_place(database, Path(folder)), steps))


async def test_who_was_called_last_is_remembered_over_a_turn_that_was_killed(
    place: str,
) -> None:
    talk = Talk(place)
    async with talk.opened() as kit:
        await talk.ask(kit, "points")
    talk.die("killed")
    async with talk.opened() as kit:
        before = kit.store.recall(TALK.key)
        await talk.ask(kit, "ok")
        newest = kit.store.turns("talk", limit=1)[0]
        assert before and before.recollection.in_play == ("points",)
        assert kit.recall_before(newest).recollection.in_play == ("points",)
        own = await talk.window(kit, "points")
        assert (
            own
            and {line.sub_agent_id for line in own.messages} == {"points"}
            and lines_of(own)[-1] == ("assistant", "4,975.")
        )


@pytest.mark.req("AS-28")
async def test_a_session_runs_while_a_turn_does_and_was_last_active_when_it_ended(
    place: str,
) -> None:
    talk = Talk(place)
    async with talk.opened() as kit:
        assert await talk.window(kit) is None
        before = time.time()
        turn = kit.ask("cancelled after five", TALK)
        await asyncio.sleep(5)
        running = await talk.window(kit)
        assert running and (running.state, running.messages) == ("running", ())
        assert before <= running.last_active == running.started_at <= time.time()
        turn.cancel()
        await turn
        ended = await talk.window(kit)
        assert ended and ended.state == "idle" and ended.started_at == running.started_at
        assert ended.last_active == pytest.approx(ended.started_at + 5)
        assert [line.ts for line in ended.messages] == [ended.started_at, ended.last_active]


@pytest.mark.req("AS-28")
async def test_a_user_who_comes_back_to_a_question_makes_the_session_active(place: str) -> None:
    talk = Talk(place)
    async with talk.opened() as kit:
        await talk.ask(kit, "paused")
        with kit.store.commit() as db:
            db.execute("UPDATE turns SET started_at = started_at - 86400")
        paused, now = await talk.window(kit), time.time()
        assert paused and paused.state == "paused" and paused.last_active < now - 80_000
        await talk.resume(kit)
        resumed = await talk.window(kit)
        assert resumed and resumed.state == "idle" and resumed.last_active >= now


@pytest.mark.req("AS-28")
async def test_a_summary_stands_for_what_it_takes_in_in_the_window_as_in_the_prompt() -> None:
    prompts: list[list[BaseMessage]] = []

    def lead(messages: list[BaseMessage]) -> Line:
        if "Sum up" in str(messages[-1].content):
            return Line(calls=[("submit_summary", {"summary": "They spoke of beans."})])
        prompts.append(messages)
        return Line("Well.")

    kit = small_kit(ScriptedModel(lead), {"a": answering("A")}, compact_after=30, compact_keep=2)
    sessions, most = kit.store.open_documents().sessions, most_lines(kit.team.deck.settings)
    session = None
    for number in range(35):
        session = await sessions.read(ALICE.principal, ALICE.id, limit=most)
        await run_turn(f"message {number}", ALICE, kit)
        assert lines_of(session) == told(prompts[-1]), number
    assert (
        session
        and session.summary == "They spoke of beans."
        and session.summary in str(prompts[-1][0].content)
    )
    assert [line.content for line in session.messages[::2]] == [
        f"message {number}" for number in range(28, 34)
    ]
    newest = await sessions.read(ALICE.principal, ALICE.id, limit=1)
    assert newest and lines_of(newest) == [("assistant", "Well.")]


async def test_what_a_turn_showed_stands_with_its_answer_and_with_the_agent_that_showed_it(
    store: TurnStore,
) -> None:
    store.open_session(TALK)
    finish(store, a_turn("t1", "talk"))
    store.keep_note(TALK.key, f"support:{ANN}", Note(value="ft_1", at=9.0))
    session = await store.open_documents().sessions.read(ANN, "talk")
    assert session and (session.support_conversation, session.last_active) == ("ft_1", 9.0)
    question, answer = session.messages
    assert (question.components, question.msg_id, answer.msg_id) == (None, "t1:0", "t1:1")
    assert [(one["type"], one["payload"]["sku"]) for one in answer.components] == [("offer", "B1")]
