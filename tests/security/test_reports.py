"""Nobody outside hears of a turn because a library reports to its makers, or because a variable of theirs is set."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import mock

import pytest

from kit.settings import Settings
from tests.cli.test_cli import run

pytestmark = pytest.mark.realtime

ASK = """
import asyncio
from langchain_core.tracers.langchain import wait_for_all_tracers
from kit import Settings, open_kit


async def main() -> None:
    settings = Settings.read()
    async with open_kit(settings, models="offline") as kit:
        reply = await kit.ask("find me coffee deals", kit.session("s"))
        assert reply.status == "ok", reply


asyncio.run(main())
wait_for_all_tracers()
"""


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
                body = json.dumps({}).encode()
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


def ask(collector: Collector, folder: Path, **variables: str) -> None:
    """Asks one question in a process whose environment sends LangChain's runs to the collector."""
    environment = {
        "PATH": os.environ["PATH"],
        "KIT_STORE": str(folder / "kit.db"),
        "KIT_PACE": "0",
        "LANGSMITH_ENDPOINT": collector.url,
        "LANGSMITH_API_KEY": "lsv2-of-nobody-123456",
        **variables,
    }
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", ASK], cwd=root, env=environment, check=True, timeout=300)


@pytest.mark.req("S-3")
@pytest.mark.parametrize("variable", ["LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"])
def test_langsmith_hears_of_no_turn_whatever_its_own_variables_say(
    collector: Collector, tmp_path: Path, variable: str
) -> None:
    ask(collector, tmp_path, **{variable: "true"})
    assert collector.posts == []


def test_langsmith_hears_where_the_settings_say_so(collector: Collector, tmp_path: Path) -> None:
    ask(collector, tmp_path, LANGSMITH_TRACING="true", KIT_LANGSMITH="1")
    assert collector.posts


def test_doctor_says_who_is_reported_to() -> None:
    silent = run("doctor").stdout
    assert "reports to others" in silent
    for name in ("LangSmith", "Streamlit", "Opik analytics", "Opik Sentry"):
        assert f"  {name:16} off" in silent
    asked = run("doctor", LANGSMITH_TRACING="true").stdout
    assert "off, though LANGSMITH_TRACING is set" in asked
    heard = run(
        "doctor", LANGSMITH_TRACING="true", KIT_LANGSMITH="1", OPIK_SENTRY_ENABLE="true"
    ).stdout
    assert "  LangSmith        on: " in heard and "  Opik Sentry      on: " in heard


def test_the_app_is_served_without_usage_statistics() -> None:
    with mock.patch("os.execv", side_effect=SystemExit) as execute, pytest.raises(SystemExit):
        run("app")
    command = execute.call_args.args[1]
    assert command[command.index("--browser.gatherUsageStats") + 1] == "false"


def test_the_setting_is_off_unless_it_is_said() -> None:
    assert Settings.read({}).langsmith is False
    assert Settings.read({"KIT_LANGSMITH": "1"}).langsmith is True
