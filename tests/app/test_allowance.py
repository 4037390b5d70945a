"""What one visitor may have of the app: turns at once, turns in a minute, dollars in a day."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kit.core.context import Principal, Session
from kit.settings import Settings
from kit.stores.sqlite import SqliteStore
from kit.ui.shared.allowance import LimitReached
from kit.ui.shared.host import Host
from tests.app.rooms import app_over, shown, whole_app
from tests.sample_turn import a_turn

ANN = Principal(tenant_id="acme", user_id="ann")
BOB = Principal(tenant_id="acme", user_id="bob")
QUESTION = "How many points do I have?"
HANGS = ["rewards=hang"]
"""Keeps a turn at work for as long as a test needs it."""


@pytest.fixture
def open_host(tmp_path: Path) -> Iterator[Callable[..., Host]]:
    hosts: list[Host] = []

    def opened(**settings: Any) -> Host:
        fields: dict[str, Any] = {
            "model": "offline",
            "pace": 0.0,
            "store": str(tmp_path / "kit.db"),
            **settings,
        }
        hosts.append(Host(Settings(**fields)))
        return hosts[-1]

    yield opened
    for host in hosts:
        host.close()


def session_of(principal: Principal) -> Session:
    return Session(id=f"chat of {principal.user_id}", principal=principal)


def wait_for_end(host: Host, turn_id: str) -> None:
    deadline = time.monotonic() + 60
    while not host.follow(turn_id, 10_000, timeout=1).done:
        assert time.monotonic() < deadline


@pytest.mark.req("S-14")
def test_turns_of_a_visitor_at_once_and_in_a_minute(open_host: Callable[..., Host]) -> None:
    host = open_host(visitor_turns_at_once=1, visitor_turns_a_minute=2)
    first = host.start(QUESTION, session_of(ANN), HANGS)
    with pytest.raises(LimitReached, match="1 question of yours is being answered"):
        host.start(QUESTION, session_of(ANN))
    wait_for_end(host, host.start(QUESTION, session_of(BOB)))
    host.cancel(first)
    wait_for_end(host, first)
    wait_for_end(host, host.start(QUESTION, session_of(ANN)))
    with pytest.raises(LimitReached, match=r"2 questions within a minute.* again in \d+ second"):
        host.start(QUESTION, session_of(ANN))


def test_the_demo_has_no_limit_of_turns_that_nobody_set(open_host: Callable[..., Host]) -> None:
    demo = open_host()
    for _ in range(9):
        demo.start(QUESTION, session_of(ANN), HANGS)
    deployed = open_host(visitor="oidc")
    with pytest.raises(LimitReached, match="8 questions of yours are being answered"):
        for _ in range(9):
            deployed.start(QUESTION, session_of(ANN), HANGS)


@pytest.mark.req("S-14")
def test_a_visitor_spends_so_much_in_a_day(open_host: Callable[..., Host], tmp_path: Path) -> None:
    now = time.time()
    with closing(SqliteStore(tmp_path / "kit.db")) as store:
        for number in range(300):
            spent = a_turn(f"ann-{number}", user="ann", at=now)
            store.begin_turn(spent.replace(status="ok", cost=0.01))
        earlier = a_turn("bob", user="bob", at=now - 2 * 86_400)
        store.begin_turn(earlier.replace(status="ok", cost=100.0))
    host = open_host(visitor_dollars_a_day=2.5)
    with pytest.raises(LimitReached, match=r"cost \$3.00.* may cost \$2.50.*midnight \(UTC\)"):
        host.start(QUESTION, session_of(ANN))
    host.start(QUESTION, session_of(BOB))
    open_host(visitor_dollars_a_day=3.5).start(QUESTION, session_of(ANN))


@pytest.mark.req("S-14")
def test_the_page_says_so_and_gives_the_question_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with app_over(tmp_path / "kit.db", monkeypatch, VISITOR_TURNS_A_MINUTE=1):
        page = whole_app().run()
        page.chat_input[0].set_value(QUESTION).run()
        assert not page.error
        page.chat_input[0].set_value("And coffee deals?").run()
        assert "You have asked 1 question within a minute" in shown(page)
        assert page.chat_input[0].proto.value == "And coffee deals?"
        assert len(page.chat_message) == 2
