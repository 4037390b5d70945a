"""A turn as a handle: follow, await, cancel; what the user reads, in which order; what is kept."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.core.bodies.speech import Text, TextReplaced
from kit.core.bodies.turn import Completed
from kit.core.card import AgentCard
from kit.core.context import OPERATOR
from kit.core.event import Event
from kit.core.outcome import AgentCall, Answer, Outcome
from kit.core.record import UNANSWERED
from kit.core.transcript import transcript
from kit.models.scripted import Line, ScriptedModel
from kit.runtime.clock import run_virtual
from kit.runtime.context import RunContext
from kit.runtime.message import LONGEST
from kit.runtime.pattern import Pattern
from kit.runtime.turn import Reply, run_turn
from tests.kits import ALICE, answering, asks, failing, small_kit, stitched


def texts(reply: Reply, channel: str) -> list[Text]:
    return [e.body for e in reply.events if isinstance(e.body, Text) and e.body.channel == channel]


@pytest.mark.req("SAT-1")
async def test_preamble_is_out_before_any_agent_starts_and_while_tools_run() -> None:
    kit = small_kit(
        [Line("Let me look.", pieces=["Let me ", "look."], calls=asks("a").calls), stitched],
        {"a": answering("A", 5)},
    )
    reply = await run_turn("one thing", ALICE, kit)
    first = next(e for e in reply.events if isinstance(e.body, Text))
    agent = next(e for e in reply.events if e.kind == "agent_started")
    assert first.seq < agent.seq and first.at < 0.1
    assert reply.preamble == "Let me look."
    assert not texts(reply, "lead")[0].synthetic


@pytest.mark.req("SAT-19")
@pytest.mark.parametrize("streaming", [True, False])
async def test_calls_without_text_get_the_cards_line_marked_synthetic(streaming: bool) -> None:
    card = AgentCard(
        id="orchestrator",
        description="R.",
        model="offline",
        sub_agents=("a",),
        preamble="Give me a moment.",
    )
    lead = ScriptedModel(asks("a", text=""), stitched, disable_streaming=not streaming)
    kit = small_kit(lead, {"a": answering("A")}, cards=[card])
    reply = await run_turn("one thing", ALICE, kit)
    [lead_text] = texts(reply, "lead")
    assert (lead_text.text, lead_text.synthetic) == ("Give me a moment.", True)
    assert reply.preamble == "Give me a moment."


@pytest.mark.req("SAT-6")
@pytest.mark.parametrize("message", ["hello", "thanks!", "good morning", "how are you?"])
async def test_small_talk_is_answered_without_a_sub_agent(message: str) -> None:
    kit = small_kit(["Hello! How can I help?"], {"shop": answering("S")}, default_sub_agent="shop")
    reply = await run_turn(message, ALICE, kit)
    assert reply.text == "Hello! How can I help?"
    assert reply.routing.invoked == () and reply.preamble == ""
    assert [t.text for t in texts(reply, "answer")] == []


@pytest.mark.req("SAT-6")
@pytest.mark.parametrize(
    "message", ["what is the capital of France?", "hello, find coffee deals", "is aspirin safe?"]
)
async def test_anything_off_the_allow_list_is_routed_even_when_the_model_answers_it_itself(
    message: str,
) -> None:
    shop = answering("Shop says so.")
    kit = small_kit(["Here is what I think.", stitched], {"shop": shop}, default_sub_agent="shop")
    reply = await run_turn(message, ALICE, kit)
    assert reply.routing.invoked == ("shop",)
    assert shop.seen[0][-1].content == message
    assert reply.text == "Shop says so."
    assert "what I think" not in transcript(reply.events).lead


async def test_without_a_default_the_orchestrator_says_itself_that_nothing_fits() -> None:
    kit = small_kit(["That is outside what I can help with."], {"shop": answering("S")})
    reply = await run_turn("what is the capital of France?", ALICE, kit)
    assert reply.text == "That is outside what I can help with." and reply.routing.invoked == ()


@pytest.mark.req("SAT-10")
async def test_the_stream_is_typed_from_thinking_to_completed() -> None:
    kit = small_kit([asks("a"), stitched], {"a": answering("A")})
    reply = await run_turn("one thing", ALICE, kit)
    kinds = [e.kind for e in reply.events]
    assert kinds[0] == "thinking" and kinds[-1] == "completed"
    assert {
        "text",
        "agent_started",
        "agent_ended",
        "model_started",
        "model_ended",
        "usage",
        "routing",
    } <= set(kinds)
    assert [e.seq for e in reply.events] == list(range(len(reply.events)))
    again = [Event.model_validate_json(e.model_dump_json()) for e in reply.events]
    assert again == list(reply.events)


async def test_a_clean_composition_streams_while_it_is_spoken() -> None:
    pieces = [f"word{i} " for i in range(20)]
    kit = small_kit(
        [asks("a"), Line("".join(pieces), pieces=pieces, pace=0.05)], {"a": answering("A")}
    )
    reply = await run_turn("one thing", ALICE, kit)
    assert len(texts(reply, "answer")) >= 10
    assert transcript(reply.events).answer.strip() == reply.text == "".join(pieces).strip()


async def test_after_a_failure_nothing_is_shown_before_it_is_checked_and_owned_up_to() -> None:
    lie = "All done, everything worked."
    kit = small_kit(
        [asks("a", "rewards"), Line(lie, pieces=[lie], pace=1)],
        {"a": answering("A"), "rewards": failing(OSError("x"))},
    )
    reply = await run_turn("two things", ALICE, kit)
    assert len(texts(reply, "answer")) == 1
    assert reply.text.endswith("I wasn't able to get an answer about rewards right now.")
    assert [e.body.path for e in reply.events if e.kind == "acknowledged"] == ["appended"]  # type: ignore[union-attr]


async def test_followers_see_everything_from_wherever_they_join_and_awaiters_do_not_own_the_turn() -> (
    None
):
    kit = small_kit([asks("a"), stitched], {"a": answering("A", 2.0)})
    turn = run_turn("one thing", ALICE, kit)

    async def wait() -> Reply:
        return await turn

    impatient = asyncio.ensure_future(wait())
    await asyncio.sleep(1)
    impatient.cancel()
    late = [event.seq async for event in turn.follow(3)]
    reply = await turn
    whole = [event.seq async for event in turn]
    assert late == list(range(3, len(reply.events))) and whole == list(range(len(reply.events)))
    assert reply.status == "ok"


@pytest.mark.parametrize("after", [0.0, 0.5, 1.5, 2.5])
async def test_cancel_ends_everything_and_completes_as_cancelled(after: float) -> None:
    lead = ScriptedModel(
        Line("Let me look.", calls=asks("a", "b").calls, delay=1), Line("never", delay=5)
    )
    kit = small_kit(lead, {"a": answering("A", 1.0), "b": answering("B", 30.0)})
    turn = run_turn("two things", ALICE, kit)
    if after:
        await asyncio.sleep(after)
    turn.cancel()
    reply = await turn
    assert reply.status == "cancelled"
    assert reply.events[-1].kind == "completed"
    record = kit.store.turn(turn.id, OPERATOR)
    assert record is not None and record.status == "cancelled"
    left = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
    assert left == []
    assert all(span.status != "running" for span in reply.trace.spans)


STOP = "You stopped me here, so this is only part of the answer."
EARLY = "You stopped me before I had an answer."


@pytest.mark.req("K-23")
@pytest.mark.parametrize(
    ("after", "text"),
    [
        (1.5, EARLY),
        (2.5, f"A\n\n{STOP}"),
        (4.5, f"A\n\nB\n\n{STOP}"),
        (6.5, f"A\n\nB\n\n{STOP}"),
        (12.0, "It is A and B."),
    ],
    ids=[
        "nothing yet",
        "one of two",
        "all but the answer",
        "in the middle of the answer",
        "too late",
    ],
)
async def test_stop_keeps_the_finished_answers_as_a_part(after: float, text: str) -> None:
    composing = Line("It is A and B.", pieces=("It is A", " and B."), delay=2, pace=2)
    lead = ScriptedModel(Line("Let me look.", calls=asks("a", "b").calls, delay=1), composing)
    kit = small_kit(lead, {"a": answering("A", 1.0), "b": answering("B", 3.0)})
    turn = run_turn("two things", ALICE, kit)
    await asyncio.sleep(after)
    turn.cancel()
    reply = await turn
    record = kit.store.turn(turn.id, OPERATOR)
    assert record is not None and record.status == reply.status == (
        "cancelled" if after < 12 else "ok"
    )
    assert reply.text == record.text == transcript(reply.events).answer == text
    last = reply.events[-1].body
    assert isinstance(last, Completed) and last.text == text
    assert [m.text for m in kit.store.history(ALICE.id, "a") if m.role == "assistant"] == (
        ["A"] if after > 2 else [UNANSWERED]
    )


@pytest.mark.req("K-23")
@pytest.mark.parametrize(
    ("begun", "kept"),
    [
        ("Here ", False),
        ("You have 4,9", False),
        ("Sunny Larder has apples. ", False),
        ("You have 4,975 points. Sunny Larder has apples ", True),
    ],
)
async def test_a_composition_broken_off_stands_only_where_it_passes_on_every_answer(
    begun: str, kept: bool
) -> None:
    rewards, shop = "You have 4,975 points in all.", "Sunny Larder has apples and pears this week."
    composing = Line(f"{begun}is.", pieces=(begun, "is."), pace=2)
    lead = ScriptedModel(asks("rewards", "shop"), composing)
    kit = small_kit(lead, {"rewards": answering(rewards), "shop": answering(shop)})
    turn = run_turn("points and offers", ALICE, kit)
    await asyncio.sleep(1)
    turn.cancel()
    reply = await turn
    answers = begun.strip() if kept else f"{rewards}\n\n{shop}"
    assert " ".join(reply.text.split()) == " ".join(f"{answers} {STOP}".split())


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("", "didn't catch"),
        ("   \n", "didn't catch"),
        ("\x00\x07", "didn't catch"),
        ("x" * 100_000, "too long"),
        ("\ud800", "didn't catch"),
    ],
)
async def test_a_message_that_cannot_be_worked_with_gets_a_plain_word_and_no_model(
    message: str, words: str
) -> None:
    lead = ScriptedModel()
    kit = small_kit(lead, {"a": answering("A")})
    reply = await run_turn(message, ALICE, kit)
    assert words in reply.text and reply.status == "ok" and lead.seen == []
    assert len(reply.events[1].body.message) == len(message if words == "too long" else "")  # type: ignore[union-attr]


async def test_the_longest_message_still_works() -> None:
    kit = small_kit(["Understood."], {"a": answering("A")})
    reply = await run_turn("x" * LONGEST, ALICE, kit)
    assert reply.text == "Understood."


async def test_the_next_turn_sees_narration_only_and_each_agent_its_own_part() -> None:
    a, b = answering("A said"), answering("B said")
    lead = ScriptedModel(asks("a", "b"), "First answer.", asks("a"), "Second answer.")
    kit = small_kit(lead, {"a": a, "b": b})
    await run_turn("first question", ALICE, kit)
    await run_turn("second question", ALICE, kit)
    second = [(m.type, m.content) for m in lead.seen[2][1:]]
    assert second == [
        ("human", "first question"),
        ("ai", "First answer."),
        ("human", "second question"),
    ]
    own = [(m.type, m.content) for m in a.seen[1][1:]]
    assert own == [("human", "about a"), ("ai", "A said"), ("human", "about a")]


async def test_one_session_never_reads_another() -> None:
    lead = ScriptedModel("One.", "Two.")
    kit = small_kit(lead, {"a": answering("A")})
    await run_turn("mine", ALICE, kit)
    await run_turn("theirs", ALICE.model_copy(update={"id": "e2"}), kit)
    assert "mine" not in str(lead.seen[1])


async def test_reply_trace_is_a_tree_with_the_agents_under_the_turn_and_models_under_them() -> None:
    kit = small_kit(
        [asks("a", "b"), stitched], {"a": answering("A", 1), "b": failing(ValueError("x"), 2)}
    )
    reply = await run_turn("two", ALICE, kit)
    rows = [
        (depth, span.kind, span.name if span.kind == "agent" else span.kind)
        for depth, span in reply.trace.rows()
    ]
    assert rows[0] == (0, "turn", "turn")
    assert (1, "agent", "a") in rows and (1, "agent", "b") in rows
    assert sum(1 for depth, kind, _ in rows if kind == "model" and depth == 2) == 2
    assert next(s for s in reply.trace.spans if s.name == "b").status == "error"
    assert reply.usage.model_calls == sum(
        1 for _, span in reply.trace.rows() if span.kind == "model"
    )


async def test_usage_sums_every_model_call_once() -> None:
    kit = small_kit([asks("a", "b"), stitched], {"a": answering("A"), "b": answering("B")})
    reply = await run_turn("two", ALICE, kit)
    models = [s.usage for s in reply.trace.spans if s.kind == "model"]
    assert reply.usage.input_tokens == sum(u.input_tokens for u in models) > 0
    assert reply.usage.output_tokens == sum(u.output_tokens for u in models) > 0
    assert reply.usage.model_calls == len(models) == 4
    by_agent = {s.name: s.usage for s in reply.trace.spans if s.kind == "agent"}
    for outcome in reply.outcomes:
        own = [s.usage for s in reply.trace.spans if s.kind == "model" and s.agent == outcome.agent]
        assert outcome.usage == by_agent[outcome.agent] == own[0]


@given(
    st.lists(
        st.tuples(st.sampled_from(["lead", "answer", "replace"]), st.text(max_size=5)), max_size=12
    )
)
def test_a_transcript_is_the_texts_in_order_with_replacements_honoured(
    steps: list[tuple[str, str]],
) -> None:
    events: list[Event] = []
    expected = {"lead": "", "answer": ""}
    for seq, (what, text) in enumerate(steps):
        body = (
            TextReplaced(from_seq=0, text=text)
            if what == "replace"
            else Text(channel=what, text=text)  # type: ignore
        )
        expected["answer" if what == "replace" else what] = (
            text if what == "replace" else expected[what] + text
        )
        events.append(Event(seq=seq, at=0, turn_id="t", span_id="s", body=body))
    found = transcript(events)
    assert (found.lead, found.answer) == (expected["lead"], expected["answer"])


@settings(max_examples=60, deadline=None)
@given(st.floats(0.0, 6.0), st.lists(st.floats(0.0, 4.0), min_size=1, max_size=4))
def test_cancelled_at_any_moment_a_turn_leaves_no_task_and_no_open_span(
    after: float, delays: list[float]
) -> None:
    async def scene() -> None:
        ids = [f"a{i}" for i in range(len(delays))]
        lead = ScriptedModel(
            Line("Hm.", calls=asks(*ids).calls, delay=0.5), Line("Done.", delay=1.0)
        )
        kit = small_kit(
            lead, {i: answering(i, delay) for i, delay in zip(ids, delays, strict=True)}
        )
        turn = run_turn("things", ALICE, kit)
        await asyncio.sleep(after)
        turn.cancel()
        reply = await turn
        assert [t for t in asyncio.all_tasks() if t is not asyncio.current_task()] == []
        assert all(span.status != "running" for span in reply.trace.spans)
        assert reply.status in ("ok", "cancelled")

    run_virtual(scene())


async def test_a_pattern_is_a_value_and_may_be_given_by_the_caller() -> None:
    async def monologue(call: AgentCall, ctx: RunContext) -> Outcome:
        return Answer(call_id=call.call_id, agent=call.agent, text=f"You said: {call.query}")

    kit = small_kit([], {"a": answering("A")})
    reply = await run_turn("hi all", ALICE, kit, pattern=Pattern("monologue", monologue))
    assert reply.text == "You said: hi all" and reply.routing.pattern == "monologue"
