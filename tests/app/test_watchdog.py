"""A loop that one piece of code holds is noticed, and the page Metrics says what held it."""

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from kit.metrics.watchdog import Silence, Watchdog, note_silence
from kit.settings import Settings
from kit.ui.shared import frame
from kit.ui.shared.host import Host
from tests.app.rooms import app_over, room
from tests.pages import unescaped


def hold_the_loop(seconds: float) -> None:
    """What no code on the loop may do."""
    time.sleep(seconds)


@pytest.mark.realtime
def test_a_loop_held_by_code_is_noted_with_the_stack(tmp_path: Path):
    host = Host(Settings(store=str(tmp_path / "kit.db"), pace=0, model="offline"))
    try:
        host._loop.call_soon_threadsafe(hold_the_loop, 1.0)
        silence = wait_for_silence(host, "hold_the_loop")
    finally:
        host.close()
    assert silence.seconds >= 0.5


def wait_for_silence(host: Host, holder: str) -> Silence:
    """Returns the silence with a function on its stack; a busy machine may hold the loop by others besides."""
    for _ in range(600):
        for silence in host.silences(0.0):
            if any(line.endswith(holder) for line in silence.stack):
                return silence
        time.sleep(0.05)
    raise AssertionError(f"nobody noticed that {holder} held the loop")


@pytest.mark.realtime
async def test_a_loop_that_waits_for_the_system_is_not_called_held():
    """A machine that is too busy to wake the loop looks like that: late, with nothing of ours on the stack."""

    class Late:
        answers = 0

        def call_soon_threadsafe(self, answer: Callable[[], None]) -> None:
            self.answers += 1
            threading.Timer(0.2, answer).start()

    loop = Late()
    noted: list[Silence] = []
    watchdog = Watchdog(cast(asyncio.AbstractEventLoop, loop), noted.append, longest=0.05)
    watchdog.start()
    while loop.answers < 3:
        await asyncio.sleep(0.05)
    await asyncio.to_thread(watchdog.stop)
    assert noted == []


def test_metrics_shows_in_red_that_the_server_stood_still_and_what_held_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with app_over(tmp_path / "kit.db", monkeypatch):
        host = frame.open_host(Settings.read())
        turn_id = host.start("how many points do I have?", host.kit.session("mine"))
        while not host.follow(turn_id, 10**6, timeout=0.1).done:
            pass
        silence = Silence(at=time.time(), seconds=99.25, stack=("shop.py:7 read_everything",))
        tenant_id = host.kit.session("").principal.tenant_id
        host.documents(lambda documents: note_silence(documents.events, tenant_id, silence))
        page = room("metrics").run()
        errors = [unescaped(error.value) for error in page.error]
        assert any("The server stood still" in error and "99.25 s" in error for error in errors)
        assert any("read_everything" in code.value for code in page.code)
