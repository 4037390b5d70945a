"""The monitor: alerts stand in the log once an hour, and reach their receiver signed, however often it fails first."""

import asyncio
import hashlib
import hmac
import json
import logging
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from kit.cli import main
from kit.core.context import Principal
from kit.core.documents.document import AgentEvent
from kit.core.errors import StoreError
from kit.planning.plan import new_plan
from kit.service.monitor import ALERT_ENDED, ALERT_FIRED, Monitor, TenantWatch, open_alerts_of
from kit.service.webhook import TRIES, Webhook, signed
from kit.stores.documents.protocol import Documents, EventFilter
from kit.stores.opening import open_store
from tests.stores.test_documents import ANN, EVE, Clock, an_event

HOUR = 3_600.0
NINE = 500_000 * HOUR
"""A full hour."""
KEY = "correct horse battery staple"


@pytest.fixture
def stores() -> Iterator[Documents]:
    with closing(open_store(":memory:")) as store:
        yield store.open_documents()


async def violate(stores: Documents, at: float, who: Principal = ANN) -> None:
    event = an_event(f"violation {at}", who, event_type="contract_violation", ts=at)
    await stores.events.append(event.replace(payload={"expected_shape": "the words of a user"}))


async def alerts(stores: Documents, tenant_id: str = "acme") -> list[tuple[str, str | None, float]]:
    """Type, name and hour of each event that is about an alert."""
    noted: list[tuple[str, str | None, float]] = []
    for event in await stores.events.query(EventFilter(tenant_id=tenant_id)):
        if event.event_type in (ALERT_FIRED, ALERT_ENDED):
            noted.append((event.event_type, event.status, (event.ts - NINE) / HOUR))
    return noted


@pytest.mark.req("AS-16", "AS-21")
async def test_an_alert_is_written_when_it_begins_each_hour_that_it_lasts_and_when_it_ends(
    stores: Documents,
) -> None:
    clock = Clock(NINE)
    monitor = Monitor(stores, clock=clock)
    assert await monitor.look() == [] and await alerts(stores) == []
    await violate(stores, NINE + 0.1 * HOUR)
    for hours in (0.1, 0.2, 0.9):
        clock.now = NINE + hours * HOUR
        (watch,) = await monitor.look()
        assert [alert.firing.name for alert in watch.alerts] == ["contract_violation"]
        assert watch.alerts[0].since == NINE + 0.1 * HOUR
    fired = (ALERT_FIRED, "contract_violation")
    assert await alerts(stores) == [(*fired, pytest.approx(0.1))]
    clock.now = NINE + 1.05 * HOUR
    (watch,) = await monitor.look()
    assert watch.alerts[0].since == NINE + 0.1 * HOUR, "it is the same alert in its second hour"
    assert len(await alerts(stores)) == 2
    clock.now = NINE + 1.5 * HOUR
    (watch,) = await monitor.look()
    assert watch.alerts == () and len(await alerts(stores)) == 2, "it lasts for its hour"
    clock.now = NINE + 2.0 * HOUR
    await monitor.look()
    await monitor.look()
    assert (await alerts(stores))[2:] == [(ALERT_ENDED, "contract_violation", pytest.approx(2.0))]
    assert await open_alerts_of(stores, None, clock.now) == {}
    await violate(stores, clock.now)
    (watch,) = await monitor.look()
    assert watch.alerts[0].since == clock.now, "and a new one begins anew"


@pytest.mark.req("AS-16")
async def test_of_two_monitors_one_writes_and_tells_and_each_tenant_has_its_own_alert(
    stores: Documents,
) -> None:
    told: list[tuple[str, str]] = []

    def monitor(name: str, clock: Clock) -> Monitor:
        async def notify(event: AgentEvent) -> None:
            told.append((name, event.tenant_id))

        return Monitor(stores, notify=notify, clock=clock)

    # Their clocks are not the same.
    first, second = monitor("first", Clock(NINE + 9.0)), monitor("second", Clock(NINE + 8.5))
    await violate(stores, NINE + 8.0)
    await asyncio.gather(first.look(), second.look())
    assert [tenant_id for _, tenant_id in told] == ["acme"] and len(await alerts(stores)) == 1
    await violate(stores, NINE + 8.2, EVE)
    await second.look()
    await first.look()
    assert told[1:] == [("second", "other")]
    assert len(await alerts(stores)) == len(await alerts(stores, "other")) == 1
    only = Monitor(stores, tenant_id="other", clock=Clock(NINE + 10.0))
    assert [watch.tenant_id for watch in await only.look()] == ["other"]


@pytest.mark.req("AS-16")
async def test_a_monitor_looks_every_minute_and_goes_on_where_the_store_fails(
    stores: Documents,
) -> None:
    class Failing:
        """The store of events, which cannot be read at the second look."""

        looks = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(stores.events, name)

        async def query(self, *arguments: Any, **options: Any) -> list[AgentEvent]:
            if self.looks == 1:
                self.looks += 1
                raise StoreError("it is gone")
            return await stores.events.query(*arguments, **options)

    failing: Any = Failing()
    loop = asyncio.get_running_loop()
    times: list[float] = []

    def note(watches: Sequence[TenantWatch]) -> None:
        failing.looks += 1
        times.append(loop.time())

    monitor = Monitor(replace(stores, events=failing), clock=Clock(NINE))
    watching = asyncio.create_task(monitor.run(note))
    await asyncio.sleep(185)
    watching.cancel()
    assert times == [pytest.approx(at, abs=1) for at in (0, 120, 180)]


@dataclass
class Receiver:
    """A server that answers with these statuses, the last one again and again."""

    statuses: list[int]
    url: str = ""
    requests: list[tuple[dict[str, str], bytes]] = field(
        default_factory=list[tuple[dict[str, str], bytes]]
    )


@contextmanager
def receiver(*statuses: int) -> Generator[Receiver]:
    own = Receiver([*statuses])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            own.requests.append((dict(self.headers), body))
            status = own.statuses.pop(0) if len(own.statuses) > 1 else own.statuses[0]
            if status:
                self.send_response(status)
                self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    own.url = f"http://127.0.0.1:{server.server_port}/hook/token-in-the-path"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield own
    finally:
        server.shutdown()
        server.server_close()


async def look_and_tell(stores: Documents, url: str) -> None:
    webhook = Webhook(SecretStr(url), SecretStr(KEY), pause=0.001)
    await violate(stores, NINE)
    await Monitor(stores, notify=webhook.send, clock=Clock(NINE)).look()


@pytest.mark.realtime
@pytest.mark.req("AS-16")
async def test_an_alert_reaches_its_receiver_signed_though_that_fails_first(
    stores: Documents,
) -> None:
    # 0: the connection is closed without an answer.
    with receiver(503, 0, 429, 204) as server:
        await look_and_tell(stores, server.url)
    assert len(server.requests) == TRIES == 4
    headers, body = server.requests[-1]
    stamp = headers["X-Kit-Timestamp"]
    digest = hmac.new(KEY.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    assert headers["X-Kit-Signature"] == f"sha256={digest}"
    assert abs(time.time() - int(stamp)) < 600
    assert signed(body, "another key", int(stamp))["X-Kit-Signature"] != f"sha256={digest}"
    assert json.loads(body) == {
        "id": f"alert.fired:contract_violation:{int(NINE / HOUR)}",
        "event": "alert.fired",
        "alert": "contract_violation",
        "tenant_id": "acme",
        "at": NINE,
        "since": NINE,
        "value": 1.0,
        "threshold": 0.0,
        "n": 1,
    }, "no words of a user, no key"


@pytest.mark.realtime
@pytest.mark.req("AS-16")
@pytest.mark.parametrize(("statuses", "tries"), [((503,), TRIES), ((400,), 1)])
async def test_what_nobody_takes_is_given_up_and_the_log_has_no_secret_of_it(
    stores: Documents, statuses: tuple[int, ...], tries: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), receiver(*statuses) as server:
        await look_and_tell(stores, server.url)
    assert len(server.requests) == tries and len(await alerts(stores)) == 1
    assert f"alert.fired of contract_violation was not told: status {statuses[0]}" in caplog.text
    own = [record.getMessage() for record in caplog.records if record.name.startswith("kit")]
    assert not any("token-in-the-path" in line or KEY in line for line in own)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("KIT_STORE", str(tmp_path / "kit.db"))
    return str(tmp_path / "kit.db")


@pytest.mark.req("AS-16")
async def test_the_command_looks_once_and_says_by_its_exit_code_whether_all_is_well(
    place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(open_store(place)) as store:
        stores = store.open_documents()
        written = an_event("e", event_type="memory.written", ts=time.time())
        await stores.events.append(written)
        assert run_once(capsys)[:2] == (0, "acme: No alert fires.")
        await violate(stores, time.time())
        code, first, text = run_once(capsys)
        assert (code, first) == (1, "acme: ALERT")
        assert "1 of 2 outputs were not of the shape that was planned; none should be" in text
        assert await alerts(stores) == [], "it writes nothing"
    code, first, _ = run_once(capsys, "--json", "--tenant", "acme")
    watch = json.loads(first)
    assert code == 1 and watch["alerts"][0]["firing"]["name"] == "contract_violation"
    assert watch["health"]["violations"]["basis"] == "1 of 2"
    assert run_once(capsys, "--tenant", "nobody")[0] == 0


@pytest.mark.req("AS-16")
async def test_the_command_says_where_too_few_plans_ended_for_an_alert_to_fire(
    place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(open_store(place)) as store:
        plans = store.open_documents().plans
        too_few = "acme: No alert fires; {} too few to tell, it takes 20."
        heads = {1: too_few.format("1 plan is"), 19: too_few.format("19 plans are")}
        for number in range(1, 21):
            plan = new_plan(f"p{number}", ANN, "s", "Do it.", time.time())
            await plans.create(plan.replace(status="failed", completed_at=time.time()))
            if number in heads:
                assert run_once(capsys)[:2] == (0, heads[number])
    assert run_once(capsys)[:2] == (1, "acme: ALERT")


def test_a_webhook_without_a_key_is_refused_with_the_setting_that_is_missing(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KIT_ALERT_WEBHOOK", "https://pager.example/hook/token-in-the-path")
    assert main(["monitor", "--once"]) == 2
    words = capsys.readouterr().err
    assert "set KIT_ALERT_KEY" in words and "token-in-the-path" not in words


@pytest.mark.req("AS-18", "AS-26")
async def test_one_query_gives_the_large_skill_responses_of_a_tenant_in_a_week(
    place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    now = time.time()
    with closing(open_store(place)) as store:
        events = store.open_documents().events
        for number, days in enumerate((8, 6, 5, 1)):
            for who in (ANN, EVE):
                event = an_event(
                    f"e{number}",
                    who,
                    ts=now - days * 86_400,
                    user_id=who.user_id,
                    skill_id=f"skill{number}",
                    # What a script reads is no call of a skill.
                    large_response_triggered=number != 2,
                    response_size_bytes=60_000,
                )
                await events.append(event)
    query = ["data", "events", "--tenant", "acme", "--type", "skill.called", "--large"]
    code, text = run(capsys, *query, "--days", "7", "--json")
    calls = [AgentEvent.model_validate_json(line) for line in text.splitlines()]
    assert code == 0
    assert [(call.tenant_id, call.user_id, call.skill_id) for call in calls] == [
        ("acme", "ann", "skill1"),
        ("acme", "ann", "skill3"),
    ]
    _, line = run(capsys, *query, "--newest", "--limit", "1")
    assert "skill_id=skill3" in line and "response_size_bytes=60000" in line
    assert line.count("\n") == 1


def run_once(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code, text = run(capsys, "monitor", "--once", *words)
    return code, text.partition("\n")[0], text


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    result: list[int] = []
    # The command runs a loop of its own.
    thread = threading.Thread(target=lambda: result.append(main(words)))
    thread.start()
    thread.join()
    return result[0], capsys.readouterr().out
