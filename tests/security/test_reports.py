"""Nobody outside hears of a turn because a library reports to its makers, or because a variable of theirs is set."""

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import mock

import pytest

from tests.cli.test_cli import run
from tests.forks import printed_by

pytestmark = pytest.mark.realtime

ASK = """
import asyncio
import os

import httpx
from langchain_core.tracers.langchain import wait_for_all_tracers
from kit import Settings, open_kit


async def ask(settings: Settings) -> None:
    async with open_kit(settings, models="offline") as kit:
        reply = await kit.ask("find me coffee deals", kit.session("s"))
        assert reply.status == "ok", reply


for settings in (Settings.read(), Settings.read().with_(langsmith=True)):
    asyncio.run(ask(settings))
    wait_for_all_tracers()
    print(httpx.get(os.environ["LANGSMITH_ENDPOINT"]).json()["posts"])
"""
"""Asks one question as the settings are, and again where they let LangSmith hear; prints after each what was posted."""


class Collector:
    """A service on the loopback that counts what is posted to it."""

    def __init__(self) -> None:
        self.posts: list[bytes] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                collector.posts.append(self.rfile.read(int(self.headers["content-length"] or 0)))
                self._answer()

            def do_GET(self) -> None:
                self._answer()

            def do_PATCH(self) -> None:
                self.do_POST()

            def _answer(self) -> None:
                body = json.dumps({"posts": len(collector.posts)}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object, **__: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield collector
    collector.server.shutdown()
    collector.server.server_close()
    thread.join()


@pytest.mark.req("S-3")
def test_langsmith_hears_of_no_turn_whatever_its_own_variables_say_until_the_settings_let_it(
    collector: Collector, tmp_path: Path
):
    environment = {
        "PATH": os.environ["PATH"],
        "KIT_STORE": str(tmp_path / "kit.db"),
        "KIT_PACE": "0",
        "LANGSMITH_ENDPOINT": collector.url,
        "LANGSMITH_API_KEY": "lsv2-of-nobody-123456",
        "LANGSMITH_TRACING": "true",
        "LANGCHAIN_TRACING_V2": "true",
    }
    asked = printed_by(ASK, [], environment, tmp_path)
    assert asked.returncode == 0, asked.stderr
    silent, heard = map(int, asked.stdout.split())
    assert silent == 0 < heard


def test_doctor_says_who_is_reported_to():
    silent = run("doctor").stdout
    assert "reports to others" in silent
    for name in ("LangSmith", "Streamlit", "Opik analytics", "Opik Sentry"):
        assert f"  {name:16} off" in silent
    asked = run("doctor", LANGSMITH_TRACING="true").stdout
    assert "off, though LANGSMITH_TRACING is set" in asked
    heard = run(
        "doctor",
        LANGSMITH_TRACING="true",
        KIT_LANGSMITH="1",
        OPIK_SENTRY_ENABLE="true",
        KIT_ALERT_WEBHOOK="https://pager.example/hook/token-in-the-path",
    ).stdout
    assert "pager.example" in heard and "token-in-the-path" not in heard
    assert "  LangSmith        on: " in heard and "  Opik Sentry      on: " in heard


def test_the_app_is_served_without_usage_statistics():
    with mock.patch("os.execv", side_effect=SystemExit) as execute, pytest.raises(SystemExit):
        run("app")
    command = execute.call_args.args[1]
    assert command[command.index("--browser.gatherUsageStats") + 1] == "false"
