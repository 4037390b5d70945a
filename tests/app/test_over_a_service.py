"""The chat and the page Plans over a service: the same pages, by one setting, and no store of their own."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Generator, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from kit import open_kit
from kit.core.context import Principal, Session
from kit.core.errors import KitError
from kit.settings import HOME, Settings
from kit.ui.shared import frame
from tests.app.rooms import app_over, button, room, shown
from tests.kits import OFFLINE
from tests.service.servers import KEYS, TASK, Api, outlets, serving_kit

WHO = {"TENANT": "acme", "USER": "u-1"}
PRINCIPAL = Principal(tenant_id=WHO["TENANT"], user_id=WHO["USER"])


@pytest.fixture
def service(tmp_path: Path) -> Iterator[str]:
    """The service of the outlets, which answers from a thread of its own; its address."""
    with on_a_thread(outlets(tmp_path)) as url:
        yield url


@asynccontextmanager
async def gifts() -> AsyncGenerator[Api]:
    async with open_kit(OFFLINE.with_(deck=HOME / "cards/gifts")) as kit, serving_kit(kit) as api:
        yield api


@contextmanager
def on_a_thread(opened: AbstractAsyncContextManager[Api]) -> Generator[str]:
    began: Future[str] = Future()
    loop = asyncio.new_event_loop()
    ending = asyncio.Event()

    async def serve() -> None:
        async with opened as api:
            began.set_result(str(api.http.base_url).rstrip("/"))
            await ending.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        yield began.result(60)
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join()
        loop.close()


@pytest.mark.req("AS-24", "AS-18", "S-14")
def test_chat_and_plans_run_over_a_service_and_other_pages_say_what_they_lack(
    service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKILL_SERVICE_KEY", KEYS["acme"])
    own = tmp_path / "own.db"
    settings = {"DECK": "cards/outlets", "SERVICE_URL": service, "VISITOR_TURNS_A_MINUTE": 1}
    with app_over(own, monkeypatch, **settings, **WHO):
        chat = room("chat").run()
        chat.chat_input[0].set_value(TASK).run()
        said = shown(chat)
        assert TASK in said and "Amber Oven" in said and service in said
        session = chat.query_params["session"]
        # Another tab, or the same one later.
        assert "Amber Oven" in shown(room("chat", session=session).run())
        plans = room("plans").run()
        assert list(plans.dataframe[0].value["State"]) == ["done"]
        # Which plan it is stands in the link of the chat's panel alone; the list has one.
        (plan_id,) = _plan_ids(service)
        told = shown(room("plans", plan=plan_id).run())
        assert TASK in told and "Amber Oven" in told and "Steps of the plan" in told
        for name in ("traces", "metrics", "compare", "benchmarks"):
            page = room(name).run()
            assert "KIT_SERVICE_URL" in shown(page)
        # A visitor has limits before a service too.
        chat.chat_input[0].set_value(TASK).run()
        assert "You have asked 1 question within a minute" in shown(chat)
        monkeypatch.setenv("KIT_VISITOR_DOLLARS_A_DAY", "1")
        assert "unset one of the two" in shown(room("chat").run())
    assert not own.exists()


@pytest.mark.req("AS-24", "K-12")
def test_a_turn_that_waits_at_a_service_is_answered_by_the_buttons_of_the_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on_a_thread(gifts()) as url:
        settings = {"DECK": "cards/gifts", "SERVICE_URL": url}
        with app_over(tmp_path / "own.db", monkeypatch, **settings, **WHO):
            chat = room("chat").run()
            chat.chat_input[0].set_value("redeem 500 points for a gift card").run()
            host = frame.open_host(Settings.read())
            session = Session(id="".join(chat.query_params["session"]), principal=PRINCIPAL)
            (view,) = host.views(session)
            with pytest.raises(KitError, match="waits for an answer"):
                # As the page Plans lets one go on: that is no "no".
                host.go_on(view.turn_id, PRINCIPAL)
            button(chat, "Yes").click().run()
            assert "500 points were redeemed" in shown(chat)


def _plan_ids(url: str) -> list[str]:
    import httpx

    headers = {"X-Tenant-Id": WHO["TENANT"], "X-User-Id": WHO["USER"]}
    listed = httpx.get(f"{url}/agent/plans", headers=headers).json()["plans"]
    return [plan["plan_id"] for plan in listed]
