"""The host: one loop in a thread, turns that outlive whoever asked."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from case_pictures import draw_picture
from kit.core.bodies.call import AgentStarted
from kit.core.bodies.speech import Text
from kit.core.bodies.turn import TurnStarted
from kit.core.context import OPERATOR, Principal, Session
from kit.core.errors import BindError, FaultError, KitError, UnknownId
from kit.core.event import Event
from kit.core.record import TurnRecord
from kit.settings import Settings
from kit.stores.sqlite import SqliteStore
from kit.ui.shared.host import MOST_FINISHED, Host
from kit.ui.shared.pictures import PictureCache
from kit.ui.shared.turn_fold import advance, stored_view
from kit.ui.shared.turn_view import TurnView
from tests.app.logs import begin, stamp
from tests.sample_turn import a_turn

MIXED = "My receipt didn't scan, how many points do I have, and find coffee deals"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(Settings(store=str(tmp_path / "kit.db"), model="offline", pace=0.5))
    yield made
    made.close()


def ended(host: Host, turn_id: str) -> list[Event]:
    events: list[Event] = []
    while True:
        batch = host.follow(turn_id, len(events), timeout=10)
        events += batch.events
        if batch.done:
            return events


def own(host: Host) -> Session:
    session = host.session("s1")
    assert session is not None
    return session


def accepted(turn_id: str) -> TurnRecord:
    """A turn that has only begun."""
    return a_turn(turn_id, user="u-001", at=time.time() + 1)


def test_two_followers_see_the_same_log_whenever_they_come(host: Host):
    turn_id = host.start(MIXED, own(host))
    early: list[Event] = []
    follower = threading.Thread(target=lambda: early.extend(ended(host, turn_id)))
    follower.start()
    time.sleep(0.3)
    late = ended(host, turn_id)
    follower.join()
    assert early == late and [event.seq for event in late] == list(range(len(late)))
    assert host.kit.store.events(turn_id, OPERATOR) == late
    assert host.views(own(host)) == [advance(TurnView(), late)]


def test_a_sub_agent_of_a_running_turn_is_broken_and_its_lead_is_not(host: Host):
    turn_id = host.start(MIXED, own(host))
    events: list[Event] = []
    while not any(isinstance(e.body, AgentStarted) and e.body.agent == "shop" for e in events):
        events += host.follow(turn_id, len(events), timeout=5).events
    with pytest.raises(FaultError, match="leads the turn"):
        host.break_agent(turn_id, "orchestrator", "raise")
    with pytest.raises(UnknownId):
        host.break_agent(turn_id, "nobody", "raise")
    host.break_agent(turn_id, "shop", "raise")
    ended(host, turn_id)
    view = host.view(turn_id, own(host).principal)
    assert view is not None and view.faults == ("shop=raise",)
    assert {step.agent: step.state for step in view.steps} == {
        "support": "ok",
        "rewards": "ok",
        "shop": "failed",
    }
    with pytest.raises(FaultError, match="it is over"):
        host.break_agent(turn_id, "shop", "raise")


def test_a_cancelled_turn_ends_as_stopped(host: Host):
    turn_id = host.start(MIXED, own(host))
    host.follow(turn_id, timeout=5)
    host.cancel(turn_id)
    view = advance(TurnView(), ended(host, turn_id))
    assert view.status == "cancelled"
    host.cancel(turn_id)
    host.cancel("unknown")


def test_closing_stops_running_turns_and_stores_them(tmp_path: Path):
    settings = Settings(store=str(tmp_path / "kit.db"), model="offline", pace=2)
    first = Host(settings)
    first.start(MIXED, own(first))
    first.close()
    second = Host(settings)
    assert [view.status for view in second.views(own(second))] == ["cancelled"]
    second.close()


def until(condition: Callable[[], bool]) -> None:
    """Waits for what another thread does."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_turn_that_runs_elsewhere_is_shown_as_that_and_followed(host: Host, tmp_path: Path):
    elsewhere = SqliteStore(tmp_path / "kit.db")  # alive, so the store leaves its turn alone
    turn = accepted("t1")
    elsewhere.begin_turn(turn)
    (view,) = host.views(own(host))
    assert (view.headline, view.running, view.elsewhere) == ("Runs on another server", True, True)
    elsewhere.end_turn(turn.model_copy(update={"status": "ok", "text": "Hello."}), [], [])
    until(lambda: host.follow("t1").done)
    assert [(view.status, view.answer) for view in host.views(own(host))] == [("ok", "Hello.")]
    elsewhere.close()


def test_a_turn_whose_process_dies_meanwhile_is_interrupted(host: Host, tmp_path: Path):
    begin = f"""
import sys
from kit.core.record import TurnRecord
from kit.stores.sqlite import SqliteStore
turn = TurnRecord.model_validate_json({accepted("t1").model_dump_json()!r})
SqliteStore({str(tmp_path / "kit.db")!r}).begin_turn(turn)
print("begun", flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", begin]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"begun\n"
        assert [view.headline for view in host.views(own(host))] == ["Runs on another server"]
        process.kill()
    until(lambda: not host.runs("t1"))
    assert [view.status for view in host.views(own(host))] == ["interrupted"]


@pytest.mark.req("K-21")
def test_what_an_interrupted_turn_had_said_is_shown_again(host: Host, tmp_path: Path):
    elsewhere = SqliteStore(tmp_path / "kit.db")
    shop = AgentStarted(agent="shop", call_id="a", query="q")
    said = (0.2, "s1", None, Text(channel="answer", text="Three beans and"))
    log = stamp([*begin(), (0.1, "s2", "s1", shop), said])
    elsewhere.begin_turn(accepted("t1"), events=log)
    until(lambda: bool(elsewhere.events("t1", OPERATOR)))
    until(lambda: bool(host.views(own(host))[0].answer))
    (view,) = host.views(own(host))
    assert (view.headline, view.answer) == ("Runs on another server", "Three beans and")
    assert [(step.agent, step.state) for step in view.steps] == [("shop", "running")]
    elsewhere.close()
    dead = stored_view(accepted("t1").model_copy(update={"status": "interrupted"}), log)
    assert (dead.status, dead.answer) == ("interrupted", "Three beans and")
    assert [(step.agent, step.state) for step in dead.steps] == [("shop", "stopped")]


@pytest.mark.req("K-24")
def test_turns_that_a_page_shows_are_read_from_the_store_once(host: Host):
    for number in range(MOST_FINISHED + 20):
        turn = accepted(f"t{number}").model_copy(
            update={"status": "ok", "started_at": float(number)}
        )
        host.kit.store.end_turn(turn, [], [])
    first = host.views(own(host), limit=100)
    assert len(first) > MOST_FINISHED
    assert all(
        one is other for one, other in zip(host.views(own(host), limit=100), first, strict=True)
    )


def test_whoever_is_named_has_a_session_in_their_own_city(host: Host):
    who = Principal(tenant_id="acme", user_id="u-003")
    theirs = host.session("s9", who)
    assert theirs is not None and (theirs.principal, theirs.location) == (
        who,
        host.people[who].location,
    )
    assert own(host).location == host.kit.deck.settings.visitor.location
    host.kit.store.open_session(theirs)
    assert host.session("s9") is None and host.session("s9", who) == theirs


def test_a_turn_is_started_as_the_scenario_says_and_tells_so(host: Host):
    turn_id = host.start(
        MIXED, own(host), ["support=error"], cap=2, pattern="mediated", model="offline"
    )
    view = advance(TurnView(), ended(host, turn_id))
    assert view.faults == ("support=raise",) and view.routing is not None and view.routing.cap == 2
    assert view.routing.left_out.count == 1 and view.principal == own(host).principal
    for wrong in ({"pattern": "mediatd"}, {"model": "offlin"}):
        with pytest.raises((UnknownId, BindError), match=r"offline|mediated"):
            host.start(MIXED, own(host), **wrong)  # type: ignore[arg-type]
    assert host.start("hello", own(host)) == host.newest(own(host)) != turn_id


def test_a_session_knows_its_newest_turn_whoever_ran_it(host: Host, tmp_path: Path):
    assert host.newest(own(host)) == ""
    ended(host, host.start("hello", own(host)))
    elsewhere = SqliteStore(tmp_path / "kit.db")
    elsewhere.begin_turn(accepted("t9"))
    assert host.newest(own(host)) == "t9"
    elsewhere.close()


def test_a_kit_that_cannot_open_raises_here_and_not_in_the_thread(tmp_path: Path):
    with pytest.raises(KitError, match="nowhere"):
        Host(Settings(deck=tmp_path / "nowhere", store=":memory:"))


def test_pictures_go_with_the_turn_and_stay_at_hand_for_a_while(host: Host):
    receipt = draw_picture("receipt")
    turn_id = host.start("why was this refused?", own(host), images=[receipt])
    begun = next(
        event.body for event in ended(host, turn_id) if isinstance(event.body, TurnStarted)
    )
    assert (
        begun.pictures == (receipt.ref,)
        and begun.message == "[picture: receipt.png] why was this refused?"
    )
    assert host.pictures.of(turn_id) == (receipt,) and host.pictures.of("another") == ()
    small = PictureCache(room=len(receipt.data))
    for turn in ("first", "second"):
        small.keep(turn, [receipt])
    assert (small.of("first"), small.of("second")) == ((), (receipt,))
