"""The host: one loop in a thread, turns that outlive whoever asked."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from case_pictures import draw_picture
from kit.core.bodies.call import AgentStarted
from kit.core.bodies.speech import Text
from kit.core.context import OPERATOR, Session
from kit.core.errors import BindError, FaultError, UnknownId
from kit.core.event import Event
from kit.core.record import TurnRecord
from kit.patterns import elsewhere
from kit.settings import Settings
from kit.stores.sqlite import SqliteStore
from kit.ui.shared.host import MOST_FINISHED, Host
from kit.ui.shared.pictures import PictureCache
from kit.ui.shared.turn_fold import advance, stored_view
from kit.ui.shared.turn_view import TurnView
from tests.app.logs import begin, stamp
from tests.kits import MIXED
from tests.sample_turn import a_turn


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setattr(elsewhere, "SILENCE", 0.1)
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
    with pytest.raises(FaultError, match="leads the turn"):
        host.break_agent(turn_id, "orchestrator", "raise")
    with pytest.raises(UnknownId):
        host.break_agent(turn_id, "nobody", "raise")
    host.break_agent(turn_id, "shop", "raise")
    ended(host, turn_id)
    view = host.view(turn_id, own(host).principal)
    assert view is not None and view.faults == ("shop=raise",)
    with pytest.raises(FaultError, match="it is over"):
        host.break_agent(turn_id, "shop", "raise")
    stopped = host.start(MIXED, own(host))
    host.cancel(stopped)
    assert advance(TurnView(), ended(host, stopped)).status == "cancelled"


def test_closing_stops_running_turns_and_stores_them(tmp_path: Path):
    settings = Settings(store=str(tmp_path / "kit.db"), model="offline", pace=2)
    first = Host(settings)
    assert first.newest(own(first)) == ""
    running = first.start(MIXED, own(first))
    assert first.newest(own(first)) == running
    for wrong in ({"pattern": "mediatd"}, {"model": "offlin"}):
        with pytest.raises((UnknownId, BindError), match=r"offline|mediated"):
            first.start(MIXED, own(first), **wrong)  # type: ignore[arg-type]
    first.cancel("unknown")
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


@pytest.mark.req("K-21")
def test_a_turn_that_runs_elsewhere_is_shown_and_followed_and_an_interrupted_one_shown_again(
    host: Host, tmp_path: Path
):
    other = SqliteStore(tmp_path / "kit.db")  # alive, so the store leaves its turn alone
    turn = accepted("t1")
    shop = AgentStarted(agent="shop", call_id="a", query="q")
    said = (0.2, "s1", None, Text(channel="answer", text="Three beans and"))
    log = stamp([*begin(), (0.1, "s2", "s1", shop), said])
    other.begin_turn(turn, events=log)
    assert host.newest(own(host)) == "t1"
    until(lambda: bool(host.views(own(host))[0].answer))
    (view,) = host.views(own(host))
    assert (view.headline, view.running, view.elsewhere) == ("Runs on another server", True, True)
    dead = stored_view(turn.replace(status="interrupted"), log)
    assert view.answer == dead.answer == "Three beans and" and dead.status == "interrupted"
    assert [view.steps[0].state, dead.steps[0].state] == ["running", "stopped"]
    other.end_turn(turn.replace(status="ok", text="Hello."), [], [])
    until(lambda: host.follow("t1").done)
    assert [(view.status, view.answer) for view in host.views(own(host))] == [("ok", "Hello.")]
    other.close()


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


def test_pictures_go_with_the_turn_and_stay_at_hand_for_a_while(host: Host):
    receipt = draw_picture("receipt")
    turn_id = host.start("why was this refused?", own(host), images=[receipt])
    view = host.view(turn_id, own(host).principal)
    assert view is not None and view.question == "[picture: receipt.png] why was this refused?"
    assert host.pictures.of(turn_id) == (receipt,) and host.pictures.of("another") == ()
    small = PictureCache(room=len(receipt.data))
    for turn in ("first", "second"):
        small.keep(turn, [receipt])
    assert (small.of("first"), small.of("second")) == ((), (receipt,))
