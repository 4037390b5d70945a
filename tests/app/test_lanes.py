"""The lanes of a turn, without a page: what stands on them at which moment, live and played again."""

from collections.abc import Iterable

from streamlit.testing.v1 import AppTest

from kit.core.bodies.call import AgentStarted, ModelStarted
from kit.core.bodies.speech import Acknowledged
from kit.core.bodies.turn import AgentBroken
from kit.core.event import Event
from kit.core.outcome import Answer, Failure
from kit.ui.canvas.drawing import axis_end, canvas_html, replay_html
from kit.ui.canvas.lane import Lane, lanes_of, now_of
from kit.ui.shared.turn_fold import advance, interrupt
from kit.ui.shared.turn_sentence import turn_sentence
from kit.ui.shared.turn_view import TurnView
from kit.ui.traces.routing_decision import decision_html
from tests.app.logs import answered, begin, end, mixed, stamp

LATE = Failure(
    call_id="b", agent="shop", axis="invocation", reason="timeout", detail="raw-detail-42"
)
EVIL = "<img src=x onerror=alert(1)>"


def lanes(events: Iterable[Event]) -> tuple[Lane, ...]:
    return lanes_of(advance(TurnView(), events))


def standing(lane: Lane, moment: float) -> list[str]:
    """The words on a lane at a moment."""
    phrases = (*lane.verdicts, *lane.words)
    return [
        phrase.text
        for phrase in phrases
        if phrase.start <= moment and (phrase.until is None or moment < phrase.until)
    ]


def test_a_replay_says_at_each_moment_what_was_said_then():
    log = mixed(LATE)
    replayed = {lane.label: lane for lane in lanes(log)}
    for moment in (0.0, 0.15, 0.25, 0.35, 0.65, 0.95, 1.15, 1.25, 2.0):
        for lane in lanes([event for event in log if event.at <= moment]):
            assert standing(lane, moment) == standing(replayed[lane.label], moment), lane.label


def test_a_lane_that_failed_says_so_in_plain_words_and_nothing_flows_from_it():
    owed = (1.15, "s1", None, Acknowledged(path="composed", owed=("shop",)))
    *log, routing, usage, done = mixed(LATE)
    log.append(Event(seq=len(log), at=1.2, turn_id="t1", span_id="s1", body=owed[3]))
    _, rewards, shop, answer = lanes([*log, routing, usage, done])
    assert shop.sentence == "Shop, failed 0.9 s: “shoes”: took too long" and shop.used_at is None
    assert (shop.tone, rewards.tone, answer.tone) == ("bad", "good", "warn")
    said = turn_sentence(advance(TurnView(), [*log, routing, usage, done]))
    assert (
        said
        == "Rewards answered. Shop failed (took too long): “shoes” is missing. The answer says so."
    )
    said = turn_sentence(advance(TurnView(), [*log[:-1], routing, usage, done]))
    assert said.endswith("“shoes” is missing. The answer does not say so.")
    assert answer.sentence == "Answer, 1 of 2 answered: The answer says so."


def test_a_turn_that_died_ends_with_its_last_event_and_nobody_says_why_an_agent_was_stopped():
    view = interrupt(advance(TurnView(), [event for event in mixed() if event.at < 1.0]))
    assert "Shop was stopped: “shoes” is missing." in turn_sentence(view)
    assert now_of(view) == view.events[-1].at, "and not today"
    lanes_left = lanes_of(view)
    assert all(lane.end is not None for lane in lanes_left) and "stopped" in lanes_left[2].sentence


def test_a_finding_of_json_stands_on_its_lane_in_words():
    finding = '{"verdict": "Take the first.", "titles": [{"id": "mg-1", "why": "It is short."}]}'
    _, _, shop, _ = lanes(mixed(Answer(call_id="b", agent="shop", text=finding)))
    assert shop.words[-1].text == "Take the first. It is short."


def test_while_one_hangs_the_finding_of_the_other_stands_there():
    running = [event for event in mixed() if event.at < 1.0]
    first, rewards, shop, _ = lanes(running)
    assert standing(rewards, 1.0) == ["answered 0.7 s", "Here."]
    assert shop.end is None and standing(first, 1.0) == ["working", "Still waiting for Shop"]
    assert turn_sentence(advance(TurnView(), running)) == (
        "Rewards has answered. Shop is at work on “shoes”, which is still missing. None has failed yet."
    )


def test_the_calls_of_members_below_a_sub_agent_are_on_its_lane():
    member = (0.3, "s7", "s3", AgentStarted(agent="other", call_id="m", query="points"))
    call = (0.35, "s8", "s7", ModelStarted(agent="other", model="offline", purpose="work"))
    log = mixed()
    extra = stamp([member, call])
    first, rewards, *_ = lanes([*log[:7], *extra, *log[7:]])
    assert [mark.name for mark in first.marks] == ["deciding"], "the orchestrator did not make it"
    assert rewards.end == 0.9


def test_a_canvas_is_drawn_as_of_a_moment_and_nothing_in_it_acts():
    log = stamp(
        [
            *begin(),
            (0.2, "s2", "s1", AgentStarted(agent=EVIL, call_id="a", query=EVIL)),
            (0.9, "s2", "s1", answered(EVIL, EVIL)),
            *end("done", EVIL),
        ]
    )
    view = advance(TurnView(), log)
    html = canvas_html(lanes(log), axis_end(2.0), "Turn", now=0.5) + replay_html(view, EVIL, EVIL)
    assert "<img" not in html and "<img" not in decision_html(view)
    assert html.count('data-phase="working"') == 2 and html.count('data-phase="waiting"') == 1
    assert '<span data-from="0.2" data-until="0.9">working</span>' in html
    assert "get_points" in canvas_html(lanes(mixed()), 2.0, "Turn", now=2.0)


def test_what_was_broken_in_the_middle_says_so_from_then_on():
    broken = Event(
        seq=99, at=0.8, turn_id="t1", span_id="s4", body=AgentBroken(agent="shop", fault="raise")
    )
    log = mixed(LATE)
    place = next(number for number, event in enumerate(log) if event.at > 0.8)
    _, rewards, shop, _ = lanes([*log[:place], broken, *log[place:]])
    assert (rewards.broken_at, shop.broken_at) == (None, 0.8)
    assert standing(shop, 0.9)[1] == "Broken here: Shop fails in the middle of its work"
    assert shop.words[-1].text == "“shoes”: took too long, broken on purpose"


def _two_running_turns() -> None:
    import streamlit as st

    from kit.compose.page import PageSettings
    from kit.core.bodies.call import AgentStarted
    from kit.ui.canvas.turn_lanes import TurnLanes
    from kit.ui.shared.turn_fold import advance
    from kit.ui.shared.turn_view import TurnView
    from tests.app.logs import begin, stamp

    for turn_id in ("t1", "t2"):
        asked = AgentStarted(agent="rewards", call_id="a", query="points")
        events = stamp([*begin(), (0.1, "s2", "s1", asked)], turn_id)
        view = advance(TurnView(turn_id=turn_id), events)
        lanes = TurnLanes(st.container(), {}, PageSettings(), lambda _agent, _kind: None)
        lanes.draw(view, 1.0)


def test_agents_of_two_turns_at_work_can_be_broken_on_one_page():
    page = AppTest.from_function(_two_running_turns, default_timeout=300).run()
    assert not page.exception
    assert len([button for button in page.button if button.label == "Hang"]) == 2
