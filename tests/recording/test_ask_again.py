"""A turn is asked again with what its session held before it, in a session of its own: the first
conversation stays as it is."""

import json
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from kit.core.context import OPERATOR, Principal, Session, SessionKey
from kit.core.record import Note, SessionRecall, TurnRecord
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.handle import Reply
from kit.runtime.memory import most_lines
from kit.runtime.turn import run_turn
from kit.settings import Settings
from kit.stores.recall import recall_before, repeated_turn
from kit.stores.sqlite import SqliteStore
from kit.wire import open_kit
from tests.kits import ALICE, SmallKit, answering, asks, small_kit, stitched

Told = dict[str, list[list[tuple[str, str]]]]


def routed(messages: list[BaseMessage]) -> Line:
    """Asks both when the message says so, else bob alone; then composes."""
    if messages[-1].type == "tool":
        return stitched(messages)
    return asks("ann", "bob") if "both" in str(messages[-1].content) else asks("bob")


class Talk:
    """A conversation in which bob does not answer the first question, and what each model was told in each turn."""

    def __init__(self) -> None:
        said = iter([Line(error=ValueError("lost"))])
        self.models = {
            "orchestrator": ScriptedModel(routed),
            "ann": answering("A is known."),
            "bob": ScriptedModel(lambda _: next(said, Line("B is known."))),
            "helper": ScriptedModel(
                lambda _: Line(calls=[("submit_prior_context", {"prior_context": "about A"})])
            ),
        }
        workers = {name: self.models[name] for name in ("ann", "bob", "helper")}
        self.kit: SmallKit = small_kit(self.models["orchestrator"], workers)

    async def ask(self, message: str, past: SessionRecall | None = None) -> tuple[Reply, Told]:
        """Asks, and returns with the reply what was sent to each model, call by call."""
        before = {name: len(model.seen) for name, model in self.models.items()}
        reply = await run_turn(message, past.session if past else ALICE, self.kit, past=past)
        calls = {name: model.seen[before[name] :] for name, model in self.models.items()}
        return reply, {
            name: [[(m.type, str(m.content)) for m in call] for call in own]
            for name, own in calls.items()
        }

    def turn(self, reply: Reply) -> TurnRecord:
        turn = self.kit.store.turn(reply.turn_id, OPERATOR)
        assert turn is not None
        return turn

    def past(self, turn: TurnRecord) -> SessionRecall:
        return recall_before(
            self.kit.store, turn, self.kit.team.agents, most_lines(self.kit.team.deck.settings)
        )


def everything(store: SqliteStore, session: str) -> list[Any]:
    """All that is stored of a session."""
    turns = store.turns(session_id=session)
    key = SessionKey(ALICE.principal.tenant_id, session)
    readers = [store.history(key, reader) for reader in ("", "ann", "bob")]
    return [
        turns,
        readers,
        store.recall(key),
        [store.events(turn.id, OPERATOR) for turn in turns],
    ]


@pytest.mark.req("K-8")
async def test_a_turn_asked_again_is_told_what_it_was_told_and_leaves_its_conversation_alone():
    talk = Talk()
    _, _ = await talk.ask("both of you")
    second, told = await talk.ask("try again")
    await talk.ask("both once more")
    before = everything(talk.kit.store, ALICE.id)
    past = talk.past(talk.turn(second))
    again, told_again = await talk.ask("try again", past)
    assert told_again == told and len(told["orchestrator"]) == 2 and len(told["bob"]) == 1
    assert "both of you" in str(told["orchestrator"][0]) and "once more" not in str(told_again)
    assert past.recollection.in_play == ("ann", "bob") and past.recollection.unanswered == ("bob",)
    assert everything(talk.kit.store, ALICE.id) == before, "the first conversation is as it was"
    turn = talk.turn(again)
    assert (
        turn.id != second.turn_id
        and repeated_turn(turn.session_id) == second.turn_id
        and again.text == second.text
    )
    assert repeated_turn(ALICE.id) == "" and talk.kit.store.session(turn.session_key) is not None


async def test_a_summary_counts_where_it_was_there_already():
    talk = Talk()
    replies = [(await talk.ask(f"both, {number}"))[0] for number in range(3)]
    last = talk.turn(replies[-1])
    summary = json.dumps({"text": "ALL OF IT", "through": replies[0].turn_id, "turns": 1})
    for at, texts in ((last.started_at - 1e-6, 1), (last.started_at + 1, 2)):
        talk.kit.store.keep_note(ALICE.key, "summary", Note(value=summary, at=at))
        past = talk.past(last)
        assert (
            len([line for line in past.lines or () if line.role == "user" and not line.agent])
            == texts
        )
        _, told = await talk.ask("both, 2", past)
        assert ("ALL OF IT" in str(told["orchestrator"])) == (texts == 1)


async def test_the_third_one_means_what_it_meant():
    async with open_kit(Settings(store=":memory:", pace=0, model="offline")) as kit:
        session = kit.session("s")
        await kit.ask("find coffee deals", session)
        third = await kit.ask("tell me about the third offer", session)
        await kit.ask("find tea deals", session)
        turn = kit.store.turn(third.turn_id, OPERATOR)
        assert turn is not None
        past = kit.recall_before(turn)
        again = await kit.ask(turn.message, past.session, past=past)
        assert again.text == third.text and past.components
        alone = await kit.ask(turn.message, kit.session("other"))
        assert alone.text != third.text, "without its past it means nothing"


async def test_nobody_asks_with_somebody_elses_past():
    talk = Talk()
    first, _ = await talk.ask("both of you")
    past = talk.past(talk.turn(first))
    stranger = Session(id=past.session.id, principal=Principal(tenant_id="acme", user_id="mallory"))
    with pytest.raises(Exception, match="belongs to someone else"):
        run_turn("both of you", stranger, talk.kit, past=past)


async def test_a_session_that_is_named_like_a_repeat_reads_nobody_elses_past():
    talk = Talk()
    await talk.ask("both of you")
    second, _ = await talk.ask("try again")
    stranger = Session(
        id=f"again:{second.turn_id}:x", principal=Principal(tenant_id="acme", user_id="mallory")
    )
    forged = await run_turn("try again", stranger, talk.kit)
    past = talk.past(talk.turn(forged))
    assert (
        past.lines == ()
        and past.session.principal == stranger.principal
        and not past.recollection.in_play
    )
